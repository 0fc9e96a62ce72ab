// SPDX-License-Identifier: Apache-2.0
// Types whose elements are packed in blocks that share a scale, as in GGUF files. Each block is converted to
// float32 when it is read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "support/byte_source.hpp"

namespace msprobe::formats {

enum class BlockType : std::uint8_t {
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q8_0,
  q2_k,
  q3_k,
  q4_k,
  q5_k,
  q6_k,
  iq4_nl,
  iq4_xs,
  mxfp4,
};

inline constexpr std::size_t kMostBlockElements = 256;

struct BlockLayout {
  std::size_t elements = 0;
  std::size_t bytes = 0;
};
BlockLayout layout_of(BlockType type);

/// The numbers to compute from a block.
enum class BlockContent : std::uint8_t {
  values,
  /// For each element, the largest distance between it and the number that was rounded to it: half the
  /// distance to its neighbour in the block, to the further one if they differ, also at the ends of the
  /// range. A quantizer may have computed with a scale in float32 and rounded the scale to float16 only to
  /// store it. An element of q steps can then be q times that rounding further away, at most 2^-11 of a step
  /// each (2^-25 below the normal numbers of float16). The result includes this, and the same for the offset
  /// if the type has one.
  half_steps,
};

/// `block` has the bytes and `out` the elements that layout_of() gives for the type.
void unpack_block(BlockType type, BlockContent content, std::span<const std::byte> block,
                  std::span<float> out);

/// The elements of whole blocks as float32 in the machine's byte order; the returned source unpacks each
/// piece when it is read. FormatError if `packed` does not consist of whole blocks, or has more elements than
/// can be counted.
std::shared_ptr<const ByteSource> unpacked_source(std::shared_ptr<const ByteSource> packed, BlockType type,
                                                  BlockContent content);

}  // namespace msprobe::formats
