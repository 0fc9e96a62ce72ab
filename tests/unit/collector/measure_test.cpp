// SPDX-License-Identifier: Apache-2.0
#include "collector/measure.hpp"

#include <doctest/doctest.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <complex>
#include <cstring>
#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "collector/checksum.hpp"
#include "msprobe/collector.h"
#include "support/crc32.hpp"
#include "tensor/convert.hpp"

namespace msprobe::collector_measure_test {

using namespace msprobe;
using namespace msprobe::collector;
using msprobe::tensor::DType;

namespace {

/// A tensor in memory that a test owns.
struct Made {
  std::vector<std::byte> memory;
  TensorView view;
};

Made make(DType dtype, std::vector<std::int64_t> shape, std::vector<std::int64_t> strides,
          std::int64_t offset, std::vector<std::byte> memory) {
  Made made{std::move(memory), {}};
  made.view.dtype = dtype;
  made.view.rank = static_cast<std::uint32_t>(shape.size());
  made.view.count = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    made.view.shape[i] = shape[i];
    made.view.strides[i] = strides[i];
    made.view.count *= static_cast<std::uint64_t>(shape[i]);
  }
  made.view.data = made.memory.data() + offset * static_cast<std::int64_t>(made.view.element_size());
  return made;
}

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

template <typename T>
Made make_flat(DType dtype, const std::vector<T>& values) {
  return make(dtype, {static_cast<std::int64_t>(values.size())}, {1}, 0, bytes_of(values));
}

/// Bytes of all elements in row-major order, found one by one.
std::vector<std::byte> logical_bytes(const TensorView& view) {
  std::vector<std::byte> result;
  const std::size_t size = view.element_size();
  for (std::uint64_t i = 0; i < view.count; ++i) {
    std::uint64_t rest = i;
    std::int64_t at = 0;
    for (std::size_t axis = view.rank; axis-- > 0;) {
      const auto length = static_cast<std::uint64_t>(view.shape[axis]);
      at += static_cast<std::int64_t>(rest % length) * view.strides[axis];
      rest /= length;
    }
    const std::byte* element = view.data + at * static_cast<std::int64_t>(size);
    result.insert(result.end(), element, element + size);
  }
  return result;
}

struct Expected {
  long double max = -HUGE_VALL, min = HUGE_VALL, sum = 0, squares = 0;
  std::uint64_t zero = 0;
};

/// The statistics by their definition, in long double.
Expected expect(const TensorView& view) {
  const std::vector<std::byte> bytes = logical_bytes(view);
  const bool complex = tensor::info(view.dtype).kind == tensor::DTypeKind::complex;
  std::vector<double> parts(view.count * (complex ? 2 : 1));
  tensor::to_double(view.dtype, bytes, parts);
  Expected result;
  for (std::uint64_t i = 0; i < view.count; ++i) {
    long double value =
        complex ? std::hypot(static_cast<long double>(parts[2 * i]), parts[2 * i + 1]) : parts[i];
    if (view.negative && !complex) value = -value;
    result.max = std::max(result.max, value);
    result.min = std::min(result.min, value);
    result.sum += value;
    result.squares += value * value;
    if (value == 0) ++result.zero;
  }
  return result;
}

void check(const TensorView& view) {
  const Expected expected = expect(view);
  std::optional<std::uint32_t> crc;
  const Measured measured = measure(view, &crc);
  CHECK(crc.has_value() == view.plain());
  if (crc) CHECK(*crc == crc32_of(view));
  const auto count = static_cast<long double>(view.count);
  // Moduli of narrow complex numbers are floats.
  const bool narrow = view.dtype == DType::complex64 || view.dtype == DType::complex32;
  const double epsilon = narrow ? 1e-6 : 1e-13;
  const auto near = [&](double value, long double wanted, long double scale) {
    return std::fabs(static_cast<long double>(value) - wanted) <=
           epsilon * std::max(scale, std::fabs(wanted));
  };
  CAPTURE(tensor::info(view.dtype).name);
  CAPTURE(view.count);
  CHECK(measured.count == view.count);
  CHECK(near(measured.max, expected.max, 0));
  CHECK(near(measured.min, expected.min, 0));
  CHECK(near(measured.mean, expected.sum / count, std::sqrt(expected.squares / count)));
  CHECK(near(measured.norm, std::sqrt(expected.squares), 0));
  CHECK(measured.zero == expected.zero);
  if (!narrow && tensor::info(view.dtype).kind != tensor::DTypeKind::complex) {
    CHECK(measured.max == static_cast<double>(expected.max));
    CHECK(measured.min == static_cast<double>(expected.min));
  }
}

/// Random elements that are finite in every type.
std::vector<std::byte> random_elements(DType dtype, std::size_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::byte> bytes(count * tensor::info(dtype).size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  const tensor::DTypeKind kind = tensor::info(dtype).kind;
  if (kind == tensor::DTypeKind::boolean) {
    for (std::byte& byte : bytes) byte &= std::byte{1};
  }
  if (kind != tensor::DTypeKind::floating && kind != tensor::DTypeKind::complex) return bytes;
  std::uniform_real_distribution<float> uniform(-4, 4);
  const std::size_t part =
      kind == tensor::DTypeKind::complex ? tensor::info(dtype).size / 2 : tensor::info(dtype).size;
  for (std::size_t at = 0; at < bytes.size(); at += part) {
    const float value = uniform(random);
    if (part == 8) {
      const double wide = value;
      std::memcpy(&bytes[at], &wide, 8);
    } else if (part == 4) {
      std::memcpy(&bytes[at], &value, 4);
    } else if (part == 2) {
      // An exponent that is not all ones.
      bytes[at + 1] &= dtype == DType::bfloat16 ? std::byte{0xBF} : std::byte{0xBB};
    } else {
      bytes[at] &= std::byte{0x1F};
    }
  }
  return bytes;
}

std::vector<DType> all_dtypes() {
  std::vector<DType> all;
  for (int i = 0; i < tensor::kDTypeCount; ++i) all.push_back(static_cast<DType>(i));
  return all;
}

}  // namespace

TEST_CASE("statistics of every type agree with a loop in long double, whatever the strides") {
  for (const DType dtype : all_dtypes()) {
    for (const std::size_t count : {1U, 2U, 15U, 16U, 17U, 100U, 1023U, 1025U, 50'000U}) {
      const auto n = static_cast<std::int64_t>(count);
      check(make(dtype, {n}, {1}, 0, random_elements(dtype, count, count)).view);
      check(make(dtype, {n}, {-1}, n - 1, random_elements(dtype, count, count)).view);
      check(make(dtype, {n}, {3}, 1, random_elements(dtype, 3 * count, count)).view);
    }
    const auto elements = [&](std::size_t count) { return random_elements(dtype, count, 7); };
    check(make(dtype, {}, {}, 0, elements(1)).view);
    check(make(dtype, {7, 5}, {1, 7}, 0, elements(35)).view);           // transposed
    check(make(dtype, {4, 3, 5}, {5, 20, 1}, 0, elements(60)).view);    // permuted, dense
    check(make(dtype, {4, 3, 40}, {0, 40, 1}, 0, elements(120)).view);  // expanded
    check(make(dtype, {3, 1, 2}, {0, 17, 0}, 0, elements(1)).view);     // expanded from one
    check(make(dtype, {4, 6, 32}, {192, 32, 1}, 0, elements(4 * 192)).view);
    check(make(dtype, {4, 5, 20}, {192, 32, 1}, 0, elements(4 * 192)).view);  // a slice
    check(make(dtype, {5, 4}, {1, 1}, 0, elements(8)).view);                  // overlapping
    check(make(dtype, {3, 4}, {-4, -1}, 11, elements(12)).view);
    check(make(dtype, {2, 1500}, {1500, -1}, 1499, elements(3000)).view);
  }
}

TEST_CASE("elements at odd addresses") {
  for (const DType dtype : all_dtypes()) {
    Made made = make(dtype, {333}, {1}, 0, random_elements(dtype, 334, 3));
    std::memmove(made.memory.data() + 1, made.memory.data(), made.memory.size() - 1);
    made.view.data = made.memory.data() + 1;
    const Made even = make(dtype, {333}, {1}, 0, logical_bytes(made.view));
    const Measured odd = measure(made.view);
    const Measured aligned = measure(even.view);
    CHECK(std::memcmp(&odd, &aligned, sizeof odd) == 0);
    CHECK(crc32_of(made.view) == crc32_of(even.view));
  }
}

TEST_CASE("a NaN makes all numbers NaN; infinities are counted") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  for (const std::size_t place : {0U, 5U, 99U}) {
    std::vector<float> values(100, 1.5F);
    values[place] = nan;
    const Measured measured = measure(make_flat(DType::float32, values).view);
    for (const double number : {measured.max, measured.min, measured.mean, measured.norm})
      CHECK(std::isnan(number));
    CHECK(measured.nan == 1);
    values[place] = -inf;
    values[50] = inf;
    const Measured both = measure(make_flat(DType::float32, values).view);
    CHECK(both.max == inf);
    CHECK(both.min == -inf);
    CHECK(std::isnan(both.mean));
    CHECK(both.norm == inf);
    CHECK(both.inf == 2);
  }
  const Measured complex =
      measure(make_flat(DType::complex64, std::vector<std::complex<float>>{{nan, inf}, {1, 0}}).view);
  CHECK(complex.max == inf);
}

TEST_CASE("extrema of integers are exact beyond what a double holds") {
  const Measured measured =
      measure(make_flat(DType::int64, std::vector<std::int64_t>{9007199254740993, -3}).view);
  CHECK(measured.integer_max == 9007199254740993);
  CHECK(measured.integer_min == -3);
  const Measured wide = measure(make_flat(DType::uint64, std::vector<std::uint64_t>{UINT64_MAX, 1}).view);
  CHECK(static_cast<std::uint64_t>(wide.integer_max) == UINT64_MAX);
  CHECK(wide.integer_min == 1);
}

TEST_CASE("negative and conjugate views") {
  Made made = make_flat(DType::float32, std::vector<float>{1, -2, 3.5F});
  made.view.negative = true;
  check(made.view);
  CHECK(measure(made.view).max == 2);
  const Made plain = make_flat(DType::float32, std::vector<float>{-1, 2, -3.5F});
  CHECK(crc32_of(made.view) == crc32_of(plain.view));
  CHECK(xor_of(made.view) == xor_of(plain.view));
  for (const bool conjugate : {false, true}) {
    for (const bool negative : {false, true}) {
      Made complex = make_flat(DType::complex64, std::vector<std::complex<float>>{{1, 2}, {-3, 4}});
      complex.view.conjugate = conjugate;
      complex.view.negative = negative;
      const float sign = negative ? -1.0F : 1.0F;
      const float imaginary = conjugate ? -sign : sign;
      const Made resolved =
          make_flat(DType::complex64,
                    std::vector<std::complex<float>>{{sign, 2 * imaginary}, {-3 * sign, 4 * imaginary}});
      CHECK(crc32_of(complex.view) == crc32_of(resolved.view));
      CHECK(measure(complex.view).max == measure(resolved.view).max);
    }
  }
}

TEST_CASE("checksums: vectors of the Python tool") {
  const auto crc = [](const Made& made) { return crc32_of(made.view); };
  const auto fold = [](const Made& made) { return xor_of(made.view); };
  const Made f32 = make_flat(DType::float32, std::vector<float>{1, -2, 3.5F});
  CHECK(crc(f32) == 0x966c0281);
  CHECK(fold(f32) == 0xc00000007fe00000);
  const Made f16 = make_flat(DType::float16, std::vector<std::uint16_t>{0x3c00, 0x4000});
  CHECK(crc(f16) == 0x7ae98278);
  CHECK(fold(f16) == 0x0000000040003c00);
  const Made bf16 = make_flat(DType::bfloat16, std::vector<std::uint16_t>{0x3f80, 0x4000});
  CHECK(crc(bf16) == 0x95f68a1a);
  CHECK(fold(bf16) == 0x0000000040003f80);
  const Made i8 = make_flat(DType::int8, std::vector<std::int8_t>{1, 2, 3});
  CHECK(crc(i8) == 0x55bc801d);
  CHECK(fold(i8) == 0x0000000000030201);
  const Made i64 = make_flat(DType::int64, std::vector<std::int64_t>{9007199254740993});
  CHECK(crc(i64) == 0x3c0cfb55);
  CHECK(fold(i64) == 0x0020000000000001);
  const Made boolean = make_flat(DType::boolean, std::vector<std::uint8_t>{1, 0});
  CHECK(crc(boolean) == 0x58c223be);
  const Made complex = make_flat(DType::complex64, std::vector<std::complex<float>>{{1, 1}, {2, 2}});
  CHECK(crc(complex) == 0x76638376);
  CHECK(fold(complex) == 0x7f8000007f800000);
  std::vector<float> range(12);
  for (std::size_t i = 0; i < range.size(); ++i) range[i] = static_cast<float>(i);
  const Made transposed = make(DType::float32, {4, 3}, {1, 4}, 0, bytes_of(range));
  CHECK(crc(transposed) == 0x7109b3e5);
  CHECK(fold(transposed) == 0x7fa0000040600000);
  const Made part = make(DType::float32, {4}, {1}, 3, bytes_of(range));
  CHECK(crc(part) == 0xd4d1f870);
  CHECK(fold(part) == 0x0040000000e00000);
  CHECK(crc(make(DType::float32, {0}, {1}, 0, {})) == 0);
}

std::uint32_t zlib_crc32(std::uint32_t start, std::span<const std::byte> bytes) {
  return static_cast<std::uint32_t>(
      ::crc32_z(start, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()));
}

TEST_CASE("the checksum is zlib's, at every length and address") {
  const std::vector<std::byte> bytes = random_elements(DType::uint8, 1200, 11);
  for (std::size_t size = 0; size <= 1100; size += size < 300 ? 1 : 37) {
    for (const std::size_t offset : {0U, 1U, 7U, 16U}) {
      const auto part = std::span(bytes).subspan(offset, size);
      const auto start = static_cast<std::uint32_t>(size * 2654435761U);
      CHECK(crc32(start, part) == zlib_crc32(start, part));
    }
  }
}

TEST_CASE("checksums follow the logical order of any strides") {
  for (const DType dtype : all_dtypes()) {
    const Made permuted = make(dtype, {40, 30, 50}, {50, 2000, 1}, 0, random_elements(dtype, 60000, 1));
    const std::vector<std::byte> bytes = logical_bytes(permuted.view);
    CHECK(crc32_of(permuted.view) == zlib_crc32(0, bytes));
    const Made reversed = make(dtype, {7, 9}, {-9, -1}, 62, random_elements(dtype, 63, 1));
    CHECK(crc32_of(reversed.view) == zlib_crc32(0, logical_bytes(reversed.view)));
    const Made expanded = make(dtype, {1000, 3}, {0, 1}, 0, random_elements(dtype, 3, 1));
    CHECK(crc32_of(expanded.view) == zlib_crc32(0, logical_bytes(expanded.view)));
    const Made dense = make(dtype, {3000}, {1}, 0, logical_bytes(expanded.view));
    CHECK(xor_of(expanded.view) == xor_of(dense.view));
  }
}

}  // namespace msprobe::collector_measure_test
