// SPDX-License-Identifier: Apache-2.0
#include "tensor/strided.hpp"

#include <cstring>

namespace msprobe::tensor {
namespace {

template <std::size_t Size>
void gather_fixed(const std::byte* from, std::int64_t step, std::size_t count, std::byte* to) {
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(to + i * Size, from, Size);
    // The step past the last element may leave the memory, so it is never taken.
    if (i + 1 < count) from += step;
  }
}

template <typename Word>
void flip(std::span<std::byte> bytes, std::size_t first, std::size_t every) {
  constexpr auto kSign = static_cast<Word>(Word{1} << (8 * sizeof(Word) - 1));
  for (std::size_t at = first * sizeof(Word); at + sizeof(Word) <= bytes.size(); at += every * sizeof(Word)) {
    Word word;
    std::memcpy(&word, bytes.data() + at, sizeof word);
    word = static_cast<Word>(word ^ kSign);
    std::memcpy(bytes.data() + at, &word, sizeof word);
  }
}

}  // namespace

void gather(const std::byte* from, std::int64_t step, std::size_t size, std::size_t count, std::byte* to) {
  if (step == static_cast<std::int64_t>(size)) {
    std::memcpy(to, from, count * size);
    return;
  }
  switch (size) {
    case 1:
      return gather_fixed<1>(from, step, count, to);
    case 2:
      return gather_fixed<2>(from, step, count, to);
    case 4:
      return gather_fixed<4>(from, step, count, to);
    case 8:
      return gather_fixed<8>(from, step, count, to);
    default:
      return gather_fixed<16>(from, step, count, to);
  }
}

void flip_signs(std::span<std::byte> numbers, std::size_t size, std::size_t first, std::size_t every) {
  switch (size) {
    case 1:
      return flip<std::uint8_t>(numbers, first, every);
    case 2:
      return flip<std::uint16_t>(numbers, first, every);
    case 4:
      return flip<std::uint32_t>(numbers, first, every);
    default:
      return flip<std::uint64_t>(numbers, first, every);
  }
}

}  // namespace msprobe::tensor
