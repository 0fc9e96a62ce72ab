// SPDX-License-Identifier: Apache-2.0
// Files read as text, a block at a time, and the names that stand in them.
#pragma once

#include <cstddef>
#include <functional>
#include <initializer_list>
#include <string_view>

#include "support/byte_source.hpp"

namespace msprobe::inspect {

// What a mark and the name behind it may take.
inline constexpr std::size_t kOverlap = 512;

/// Hands on the file in blocks, each with the first kOverlap bytes of the next one behind its own `length`
/// bytes. False, and no more blocks, once `take` says false.
bool each_block(const ByteSource& file,
                const std::function<bool(std::string_view block, std::size_t length)>& take);

/// The dotted name at the beginning of the text; it may be empty.
std::string_view name_at(std::string_view text);

/// Does the name of a file end so, in any case?
bool is_named(std::string_view name, std::initializer_list<std::string_view> suffixes);

}  // namespace msprobe::inspect
