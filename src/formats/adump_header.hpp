// SPDX-License-Identifier: Apache-2.0
// An adump header has two forms; a separate source file reads each.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/adump.hpp"

namespace msprobe::formats {

inline constexpr std::uint32_t kAdumpMagic = 0x5a5a5a5a;
inline constexpr std::size_t kMaxAdumpItems = 65'536;
inline constexpr std::size_t kMaxAdumpRank = 64;

/// Fill the items; sizes and offsets are not checked. FormatError naming the file. A protobuf header is read
/// at its place in the file.
void read_protobuf_header(AdumpFile& dump, std::uint64_t begin, std::uint64_t length);
void read_nano_header(std::string_view header, AdumpFile& dump);

/// For the readers: throws FormatError for this file.
[[noreturn]] void fail_adump(const AdumpFile& dump, const std::string& reason);
/// Adds an item; FormatError if there are too many.
AdumpItem& add_item(AdumpFile& dump, AdumpRole role);
/// Gives the items of each role their indices.
void number_items(AdumpFile& dump);
/// Adds a dimension; FormatError if there are too many or it is beyond 63 bits.
void add_dimension(const AdumpFile& dump, std::vector<std::int64_t>& shape, std::uint64_t length);

}  // namespace msprobe::formats
