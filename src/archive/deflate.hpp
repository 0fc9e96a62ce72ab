// SPDX-License-Identifier: Apache-2.0
// Compresses text in blocks, on any thread; the blocks are joined afterwards.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace msprobe::archive {

/// A piece of a deflated stream, which can follow another piece directly.
struct DeflatedBlock {
  std::string bytes;           // ends at a byte boundary and is not the last block
  std::uint64_t raw_size = 0;  // before compression
  std::uint32_t crc = 0;       // of the raw bytes
};

/// Ends a stream of such pieces: an empty block that is marked as the last one.
inline constexpr std::string_view kLastDeflateBlock("\x03\x00", 2);

/// Compresses `raw` into `block`, whose memory is reused. Favours speed over size.
void deflate_block(std::string_view raw, DeflatedBlock& block);

/// A whole deflated stream with zlib's default compression.
std::string deflate_whole(std::string_view raw);

}  // namespace msprobe::archive
