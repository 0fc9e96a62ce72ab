// SPDX-License-Identifier: Apache-2.0
// Rates the texts in a model's folder. The name of a text selects the parser, which reads it to its end.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "inspect/facts.hpp"
#include "support/byte_source.hpp"

namespace msprobe::inspect {

enum class TextKind : std::uint8_t {
  json,
  json_lines,
  yaml,
  prose,    // text for people, lists of tokens, tables, templates
  program,  // programs run it by default, or tools install what it lists
  other,    // any loader may read it
};

/// `name` may be a path.
TextKind text_kind(std::string_view name);

/// The findings by which a text is more than pure data, without their place; empty for pure data. Pickles in
/// the text are not searched.
std::vector<ContentFacts> rate_text(const ByteSource& file, std::string_view name);

}  // namespace msprobe::inspect
