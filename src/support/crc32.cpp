// SPDX-License-Identifier: Apache-2.0
#include "support/crc32.hpp"

#include <libdeflate.h>

#include <array>

namespace msprobe {
namespace {

/// The change of a CRC-32C by each byte. A table of one byte is enough: event files are short.
constexpr std::array<std::uint32_t, 256> castagnoli_table() {
  constexpr std::uint32_t kPolynomial = 0x82F63B78;  // its bits reversed
  std::array<std::uint32_t, 256> table = {};
  for (std::uint32_t byte = 0; byte < table.size(); ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    table[byte] = crc;
  }
  return table;
}

}  // namespace

std::uint32_t crc32(std::uint32_t crc, std::span<const std::byte> bytes) {
  // libdeflate would read a null pointer as the start of a new checksum.
  return bytes.empty() ? crc : libdeflate_crc32(crc, bytes.data(), bytes.size());
}

std::uint32_t crc32c(std::span<const std::byte> bytes) {
  static constexpr std::array<std::uint32_t, 256> kTable = castagnoli_table();
  std::uint32_t state = ~std::uint32_t{0};
  for (const std::byte byte : bytes)
    state = (state >> 8) ^ kTable[(state ^ std::to_integer<std::uint32_t>(byte)) & 0xff];
  return ~state;
}

}  // namespace msprobe
