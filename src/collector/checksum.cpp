// SPDX-License-Identifier: Apache-2.0
#include "collector/checksum.hpp"

#include <cstring>

#include "support/crc32.hpp"

namespace msprobe::collector {

std::uint32_t crc32_of(const TensorView& view) {
  std::uint32_t crc = 0;
  each_piece(view, [&](std::span<const std::byte> bytes) { crc = crc32(crc, bytes); });
  return crc;
}

std::uint64_t xor_of(const TensorView& view) {
  // All pieces but the last consist of whole words.
  std::uint64_t result = 0;
  each_piece(view, [&](std::span<const std::byte> bytes) {
    std::size_t at = 0;
    std::uint64_t word = 0;
    for (; at + sizeof word <= bytes.size(); at += sizeof word) {
      std::memcpy(&word, bytes.data() + at, sizeof word);
      result ^= word;
    }
    word = 0;
    std::memcpy(&word, bytes.data() + at, bytes.size() - at);
    result ^= word;
  });
  return result;
}

}  // namespace msprobe::collector
