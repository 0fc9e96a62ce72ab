// SPDX-License-Identifier: Apache-2.0
#include "parse/md5.hpp"

#include <bit>
#include <cmath>
#include <span>
#include <string>

#include "support/little_endian.hpp"

namespace msprobe::parse {
namespace {

constexpr std::size_t kBlock = 64;

/// The constants of the 64 steps: the fractions of sines.
std::array<std::uint32_t, kBlock> sines() {
  std::array<std::uint32_t, kBlock> table{};
  for (std::size_t i = 0; i < table.size(); ++i)
    table[i] = static_cast<std::uint32_t>(std::fabs(std::sin(static_cast<double>(i + 1))) * 4294967296.0);
  return table;
}

constexpr std::array<std::array<int, 4>, 4> kShifts = {
    {{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}}};

}  // namespace

std::array<std::uint8_t, 16> md5(std::string_view text) {
  static const std::array<std::uint32_t, kBlock> kSines = sines();
  std::string message(text);
  message += '\x80';
  while (message.size() % kBlock != kBlock - 8) message += '\0';
  append_le<std::uint64_t>(message, std::uint64_t{text.size()} * 8);

  std::array<std::uint32_t, 4> state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
  const std::byte* data = std::as_bytes(std::span(message)).data();
  for (std::size_t block = 0; block < message.size(); block += kBlock) {
    auto [a, b, c, d] = state;
    for (std::size_t i = 0; i < kBlock; ++i) {
      std::uint32_t mixed = 0;
      std::size_t word = 0;
      switch (i / 16) {
        case 0:
          mixed = (b & c) | (~b & d);
          word = i;
          break;
        case 1:
          mixed = (d & b) | (~d & c);
          word = (5 * i + 1) % 16;
          break;
        case 2:
          mixed = b ^ c ^ d;
          word = (3 * i + 5) % 16;
          break;
        default:
          mixed = c ^ (b | ~d);
          word = (7 * i) % 16;
          break;
      }
      const std::uint32_t sum = a + mixed + kSines[i] + load_le<std::uint32_t>(data + block + 4 * word);
      a = d;
      d = c;
      c = b;
      b += std::rotl(sum, kShifts[i / 16][i % 4]);
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
  }
  std::array<std::uint8_t, 16> digest{};
  for (std::size_t i = 0; i < digest.size(); ++i)
    digest[i] = static_cast<std::uint8_t>(state[i / 4] >> (8 * (i % 4)));
  return digest;
}

}  // namespace msprobe::parse
