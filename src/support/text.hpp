// SPDX-License-Identifier: Apache-2.0
// Text in Python's form, conversion of numbers from and to text, and strings made safe to show.
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

/// The value with this many significant digits. NaN has no sign, because its sign means nothing.
std::string short_number(double value, int digits);

/// Appends python_repr(value) to `out`.
void append_python_repr(std::string& out, double value);

/// `repr(str)` of Python: single quotes, unless the text contains one and no double quote. Escapes backslash,
/// newline, tab, carriage return, and other control, format and blank characters (except the space). Bytes
/// that are not UTF-8 become the surrogates that Python reads.
std::string python_repr(std::string_view text);

/// The double that `float(text)` of Python gives, or nothing. Blanks around it, `inf`, `infinity` and `nan`
/// in any case are accepted, `_` between digits is not.
std::optional<double> parse_number(std::string_view text);

/// The text without the blanks (U+0020) at its ends.
std::string_view trimmed(std::string_view text);

/// The parts between characters of `separators`, including empty ones; at least one.
std::vector<std::string_view> split(std::string_view text, std::string_view separators);

/// Appends a csv field: in quotes if it contains a comma, a quote or an end of line.
void append_csv_field(std::string& out, std::string_view text);

/// CRC-32 (PKZIP polynomial) of the bytes, as eight lower-case hex digits.
std::string crc32_hex(std::string_view bytes);

/// True for a character that is drawn without mark and width: joiners, marks of direction, selectors, tags,
/// fillers.
bool is_invisible(char32_t c);

/// The text with escapes for control characters, invalid UTF-8 and characters of is_invisible(), so that a
/// hostile name cannot control a terminal, break a line, hide a message or look like another name.
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

/// True if the whole text is valid UTF-8.
bool is_utf8(std::string_view text);

/// The number of characters that must be replaced, added or removed to turn one text into the other.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// The first of `known` with the least difference from `typed`, if it is below `limit` characters; else
/// empty.
std::string_view nearest_of(std::span<const std::string_view> known, std::string_view typed,
                            std::size_t limit);

/// A size with decimal units, such as "1.2 GB".
std::string human_bytes(std::uint64_t bytes);

/// An integer with thousands separated: 1,234,567.
std::string human_count(std::uint64_t count);

}  // namespace msprobe
