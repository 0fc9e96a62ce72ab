// SPDX-License-Identifier: Apache-2.0
// Files read as text, a block at a time, and their names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string_view>

#include "support/byte_source.hpp"

namespace msprobe::inspect {

// The longest character that may cross the end of a block fits.
inline constexpr std::size_t kOverlap = 8;

/// Calls `take` for the file's blocks. Each has `length` bytes, followed by the first kOverlap bytes of the
/// next block. Stops and returns false when `take` returns false.
bool each_block(const ByteSource& file,
                const std::function<bool(std::string_view block, std::size_t length)>& take);

/// Hands on where each line begins, and its first character, until `take` says false. Empty lines are left
/// out.
void each_line(const ByteSource& file, const std::function<bool(std::uint64_t begin, char first)>& take);

/// Does the name of a file end so, in any case?
bool is_named(std::string_view name, std::initializer_list<std::string_view> suffixes);

/// Does the list of words, separated by blanks, contain the word?
bool has_word(std::string_view words, std::string_view word);

}  // namespace msprobe::inspect
