// SPDX-License-Identifier: Apache-2.0
// Keys and tags by which a configuration has its loader run or import what it names.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "inspect/facts.hpp"

namespace msprobe::inspect {

/// Without the place.
using Finding = std::optional<ContentFacts>;

Finding always(std::string_view what, Rating rating = Rating::unknown);

struct Mark {
  std::string_view text;
  /// What stands behind the mark; nothing where it is harmless.
  Finding (*judge)(std::string_view rest);
};

/// Those of all files: YAML tags of Python, Hydra, transformers, Keras, sentence-transformers, peft.
std::span<const Mark> loader_marks();
/// One that means something in files of this name alone; nullptr if there is none.
const Mark* mark_of_file(std::string_view name);
/// Behind `%TAG` at the beginning of a line.
Finding tag_directive(std::string_view rest);

}  // namespace msprobe::inspect
