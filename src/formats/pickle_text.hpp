// SPDX-License-Identifier: Apache-2.0
// The spellings of strings and numbers in old pickle protocols, and of Python's names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace msprobe::formats {

/// A quoted Python literal with backslash escapes (opcode STRING). Nothing if it is malformed.
std::optional<std::string> decode_quoted(std::string_view line);

/// Latin-1 with \uXXXX and \UXXXXXXXX (opcode UNICODE), as UTF-8. Nothing if it is malformed.
std::optional<std::string> decode_raw_unicode(std::string_view line);

inline constexpr std::size_t kLongestKey = 4096;
/// The key of a memo entry, as Python reads it (opcodes GET and PUT): it ignores blanks around the key, a
/// plus sign, underscores between digits, and everything after a zero byte. Nothing if the key is malformed,
/// beyond 64 bits or longer than kLongestKey.
std::optional<std::uint64_t> decode_key(std::string_view line);

/// A whole number of any size with an optional prefix 0x, 0o or 0b (opcodes INT and LONG), as little-endian
/// two's complement. Nothing if it is malformed or has more digits than Python reads.
std::optional<std::string> decode_integer(std::string_view line);

/// Can the character occur in a name that Python imports, dots included?
bool is_of_python_name(char c);

}  // namespace msprobe::formats
