// SPDX-License-Identifier: Apache-2.0
// Names of dump entries (docs/formats.md, "Entry names"). Prefixes and paths may hold dots, so names are read
// from the right.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "support/ascii.hpp"

namespace msprobe::dump {

enum class Direction : std::uint8_t { forward, backward, parameters_grad, debug };

struct EntryName {
  /// `Functional.linear` of `Functional.linear.0.forward`, `Module.fc.Linear` of `Module.fc.Linear.forward.0`
  /// and of `Module.fc.Linear.parameters_grad.0`.
  std::string_view base;
  Direction direction = Direction::forward;
  /// `0` in each of the examples; empty if the name has no number.
  std::string_view call;
  bool call_first = false;  // `0.forward` (APIs) rather than `forward.0` (modules)
  bool is_module = false;   // starts with `Module.` or `Cell.`
  /// `linear` for APIs; the class name (`Linear`) for modules.
  std::string_view operation() const;
};

/// The places of an EntryName in the whole name, which outlast a move of the text.
struct NameParts {
  std::uint32_t base_size = 0;
  std::uint32_t call_begin = 0;
  std::uint32_t call_size = 0;
  Direction direction = Direction::forward;
  bool call_first = false;
  bool is_module = false;

  NameParts() = default;
  NameParts(std::string_view name, const EntryName& parsed);
  EntryName of(std::string_view name) const;
};

/// Nothing if neither of the last two parts says forward, backward or parameters_grad, and the last is not
/// `debug`.
std::optional<EntryName> parse_entry_name(std::string_view name);

/// Splits off the last dot-part: {"a.b", "c"} of "a.b.c"; {"", "a"} of "a".
std::pair<std::string_view, std::string_view> split_last(std::string_view name);

using msprobe::is_digits;

}  // namespace msprobe::dump
