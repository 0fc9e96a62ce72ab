// SPDX-License-Identifier: Apache-2.0
// Text compressed in blocks, on any thread, that are put one behind the other afterwards.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace msprobe::archive {

/// A piece of a deflated stream, ready to be put behind the piece before.
struct DeflatedBlock {
  std::string bytes;           // ends at a byte boundary and is not the last block
  std::uint64_t raw_size = 0;  // before compression
  std::uint32_t crc = 0;       // of the raw bytes
};

/// Ends a stream of such pieces: an empty block with the mark of the last one.
inline constexpr std::string_view kLastDeflateBlock("\x03\x00", 2);

/// Compresses `raw` into `block`, whose memory is used again. Quick rather than small.
void deflate_block(std::string_view raw, DeflatedBlock& block);

/// A whole deflated stream, as small as zlib makes it by default.
std::string deflate_whole(std::string_view raw);

}  // namespace msprobe::archive
