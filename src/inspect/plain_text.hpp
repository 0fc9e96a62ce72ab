// SPDX-License-Identifier: Apache-2.0
// Texts that lie in the folder of a model. By its name a text is read by the parser of its kind, to its end.
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
  prose,    // for people, lists of tokens, tables, templates
  program,  // what a program does by default, or what a tool installs
  other,    // any loader may claim it
};

/// `name` may be a path.
TextKind text_kind(std::string_view name);

/// What keeps a text from being pure data, without the place; nothing where all of it is. Pickles within it
/// are not looked for.
std::vector<ContentFacts> rate_text(const ByteSource& file, std::string_view name);

}  // namespace msprobe::inspect
