// SPDX-License-Identifier: Apache-2.0
#include "tensor/strided.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <numeric>
#include <vector>

namespace msprobe::tensor_strided_test {

namespace {

using msprobe::tensor::flip_signs;
using msprobe::tensor::gather;

template <typename Number>
std::span<std::byte> bytes_of(std::vector<Number>& numbers) {
  return std::as_writable_bytes(std::span<Number>(numbers));
}

}  // namespace

TEST_CASE("gather takes elements of every size with any step") {
  std::vector<std::uint8_t> memory(16 * 12);
  std::iota(memory.begin(), memory.end(), std::uint8_t{0});
  const auto* base = reinterpret_cast<const std::byte*>(memory.data());
  for (const std::size_t size : {1u, 2u, 4u, 8u, 16u}) {
    for (const std::int64_t elements : {1, 0, -1, 3, -2}) {
      const std::int64_t step = elements * static_cast<std::int64_t>(size);
      constexpr std::size_t kCount = 4;
      // Down from the end for a negative step, so that every element is in the memory.
      const std::int64_t start = elements < 0 ? -step * static_cast<std::int64_t>(kCount - 1) : 0;
      std::vector<std::uint8_t> got(kCount * size, 0xEE);
      gather(base + start, step, size, kCount, reinterpret_cast<std::byte*>(got.data()));
      for (std::size_t i = 0; i < kCount; ++i) {
        for (std::size_t j = 0; j < size; ++j) {
          const std::int64_t at = start + step * static_cast<std::int64_t>(i) + static_cast<std::int64_t>(j);
          CAPTURE(size);
          CAPTURE(elements);
          CHECK(got[i * size + j] == memory[static_cast<std::size_t>(at)]);
        }
      }
    }
  }
}

TEST_CASE("gather of nothing touches nothing") {
  std::byte untouched{7};
  gather(&untouched, 8, 4, 0, &untouched);
  CHECK(untouched == std::byte{7});
}

TEST_CASE("flip_signs negates all numbers or every second one") {
  std::vector<float> all{1.5F, -2.0F, 0.0F};
  flip_signs(bytes_of(all), 4, 0, 1);
  CHECK(all == std::vector<float>{-1.5F, 2.0F, -0.0F});
  CHECK(std::signbit(all[2]));

  std::vector<std::complex<double>> pairs{{1.0, 2.0}, {-3.0, -4.0}};
  flip_signs(bytes_of(pairs), 8, 1, 2);
  CHECK(pairs == std::vector<std::complex<double>>{{1.0, -2.0}, {-3.0, 4.0}});

  std::vector<std::uint16_t> halves{0x3C00, 0xC000};  // 1 and -2 as IEEE half
  flip_signs(bytes_of(halves), 2, 0, 1);
  CHECK(halves == std::vector<std::uint16_t>{0xBC00, 0x4000});

  std::vector<std::uint8_t> eighths{0x38, 0xB8};  // 1 and -1 as float8_e4m3
  flip_signs(bytes_of(eighths), 1, 0, 1);
  CHECK(eighths == std::vector<std::uint8_t>{0xB8, 0x38});
}

}  // namespace msprobe::tensor_strided_test
