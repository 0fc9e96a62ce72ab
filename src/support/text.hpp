// SPDX-License-Identifier: Apache-2.0
// Text as Python prints it, numbers in and out of text, and strings made safe to show.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace msprobe {

/// `repr(float)` of Python: the shortest decimal that reads back as the same double; fixed notation for
/// 1e-4 <= |x| < 1e16, else an exponent of at least two digits; `nan`, `inf`, `-inf`.
std::string python_repr(double value);

/// The value with so many significant digits; NaN without its sign, which says nothing.
std::string short_number(double value, int digits);

/// Appends python_repr(value) to `out`.
void append_python_repr(std::string& out, double value);

/// `repr(str)` of Python: single quotes unless the text holds one and no double quote; backslash, newline,
/// tab, carriage return, other control, format and blank characters (but the space) escaped, and bytes that
/// are not UTF-8 as the surrogates Python reads them as.
std::string python_repr(std::string_view text);

/// The double that `float(text)` of Python gives (blanks around it, `inf`, `infinity`, `nan` in any case, `_`
/// between digits not accepted), or nothing.
std::optional<double> parse_number(std::string_view text);

/// The text without the blanks (U+0020) at its ends.
std::string_view trimmed(std::string_view text);

/// The parts between characters of `separators`, empty ones too; one at least.
std::vector<std::string_view> split(std::string_view text, std::string_view separators);

/// A csv field: in quotes if it holds a comma, a quote or the end of a line.
void append_csv_field(std::string& out, std::string_view text);

/// CRC-32 (PKZIP polynomial) of the bytes, as eight lower-case hex digits.
std::string crc32_hex(std::string_view bytes);

/// Is the character drawn with no mark and no width: joiners, marks of direction, selectors, tags, fillers?
bool is_invisible(char32_t c);

/// The text with control characters, invalid UTF-8 and what is_invisible() replaced by escapes, so that a
/// hostile name cannot drive a terminal, break a line, hide a message or show as another.
std::string display(std::string_view text);

/// One character of UTF-8 text. An invalid byte has `length` 1 and `valid` false.
struct Utf8 {
  char32_t code = 0;
  std::uint8_t length = 1;
  bool valid = false;
};

/// The character that starts at `text[at]`; `at` must be inside the text.
Utf8 utf8_at(std::string_view text, std::size_t at);

/// The text with every byte that is not part of valid UTF-8 replaced by U+FFFD.
std::string valid_utf8(std::string_view text);

/// Is the whole text valid UTF-8?
bool is_utf8(std::string_view text);

/// How many characters must be replaced, added or removed to make one text of the other.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The one of `known` from which `typed` differs least, by less than `limit` characters: the first of
/// several; empty if there is none.
std::string_view nearest_of(std::span<const std::string_view> known, std::string_view typed,
                            std::size_t limit);

/// "1.2 GB" style sizes with decimal units.
std::string human_bytes(std::uint64_t bytes);

/// Integer with thousands separated: 1,234,567.
std::string human_count(std::uint64_t count);

}  // namespace msprobe
