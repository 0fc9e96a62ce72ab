// SPDX-License-Identifier: Apache-2.0
// Makes text from outside safe for a spreadsheet.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace msprobe::report {

/// The kinds of bytes in a text, found in one pass.
struct TextTraits {
  static constexpr std::uint8_t kHigh = 1;  // not ASCII
  static constexpr std::uint8_t kSemicolon = 2;
  static constexpr std::uint8_t kCsv = 4;  // csv must quote it
  static constexpr std::uint8_t kXml = 8;  // markup or a control character
  static constexpr std::uint8_t kUnderscore = 16;
  static constexpr std::uint8_t kControl = 32;  // controls a terminal: not line ends and tabs

  std::uint8_t bits = 0;
  bool has(unsigned kinds) const { return (bits & kinds) != 0; }
};

TextTraits traits_of(std::string_view text);

/// Can `text` go into a csv field or a cell of a workbook without safe_text()?
bool is_safe_text(std::string_view text, TextTraits traits);

/// The text with escapes instead of control characters (except line ends and tabs), so that it cannot control
/// a terminal.
std::string without_controls(std::string_view text);

/// The text in valid UTF-8 (U+FFFD for invalid bytes), with an apostrophe before each part that a spreadsheet
/// would take for a formula. Parts begin at the start and after each semicolon, because spreadsheets of some
/// countries split csv there.
std::string safe_text(std::string_view text);

}  // namespace msprobe::report
