// SPDX-License-Identifier: Apache-2.0
// Foreign text on its way into a spreadsheet.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace msprobe::report {

/// What kinds of bytes a text holds, found in one pass.
struct TextTraits {
  static constexpr std::uint8_t kHigh = 1;  // not ASCII
  static constexpr std::uint8_t kSemicolon = 2;
  static constexpr std::uint8_t kCsv = 4;  // csv must quote it
  static constexpr std::uint8_t kXml = 8;  // markup or a control character
  static constexpr std::uint8_t kUnderscore = 16;
  static constexpr std::uint8_t kControl = 32;  // drives a terminal: not the end of a line, nor a tab

  std::uint8_t bits = 0;
  bool has(unsigned kinds) const { return (bits & kinds) != 0; }
};

TextTraits traits_of(std::string_view text);

/// Can `text` go into a csv field or a cell of a workbook without safe_text()?
bool is_safe_text(std::string_view text, TextTraits traits);

/// The text with escapes in place of control characters but line ends and tabs, so that it cannot drive a
/// terminal.
std::string without_controls(std::string_view text);

/// The text in valid UTF-8 (U+FFFD for bytes that are not), an apostrophe before each part that a spreadsheet
/// would take for a formula. Parts begin at the start and after each semicolon, which some countries'
/// spreadsheets split csv at.
std::string safe_text(std::string_view text);

}  // namespace msprobe::report
