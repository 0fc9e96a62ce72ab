// SPDX-License-Identifier: Apache-2.0
#include "tensor/convert.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <vector>

namespace msprobe::tensor::convert_test {
namespace {

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> raw(values.size() * sizeof(T));
  if (!raw.empty()) std::memcpy(raw.data(), values.data(), raw.size());
  return raw;
}

template <typename T>
std::vector<double> doubles(DType dtype, const std::vector<T>& values, std::size_t factor = 1) {
  const std::vector<std::byte> raw = bytes_of(values);
  std::vector<double> out(raw.size() / info(dtype).size * factor);
  to_double(dtype, raw, out);
  return out;
}

std::vector<float> all_patterns(DType dtype) {
  std::vector<std::byte> raw;
  if (info(dtype).size == 1) {
    std::vector<std::uint8_t> patterns(256);
    std::iota(patterns.begin(), patterns.end(), std::uint8_t{0});
    raw = bytes_of(patterns);
  } else {
    std::vector<std::uint16_t> patterns(65536);
    std::iota(patterns.begin(), patterns.end(), std::uint16_t{0});
    raw = bytes_of(patterns);
  }
  std::vector<float> out(raw.size() / info(dtype).size);
  to_float(dtype, raw, out);
  return out;
}

bool same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) ||
         std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
}

/// FNV-1a over the little-endian bytes of all values, every NaN as 0x7fc00000.
std::uint64_t digest(const std::vector<float>& values) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const float value : values) {
    const std::uint32_t bits = std::isnan(value) ? 0x7fc00000u : std::bit_cast<std::uint32_t>(value);
    for (unsigned shift = 0; shift < 32; shift += 8)
      hash = (hash ^ ((bits >> shift) & 0xff)) * 0x100000001b3u;
  }
  return hash;
}

}  // namespace

TEST_CASE("all patterns of the narrow floats are what PyTorch 2.13 makes of them") {
  // The digests come from torch's own conversion of all patterns, in ascending order, to float32.
  CHECK(digest(all_patterns(DType::float16)) == 0x1f87f165810ea7c5u);
  CHECK(digest(all_patterns(DType::bfloat16)) == 0xcf8e09175d8f5ba5u);
  CHECK(digest(all_patterns(DType::float8_e4m3fn)) == 0xdad1d9c50f749ca5u);
  CHECK(digest(all_patterns(DType::float8_e5m2)) == 0x6c1e56b6fb09c905u);
  CHECK(digest(all_patterns(DType::float8_e4m3fnuz)) == 0xf51851cb11c63018u);
  CHECK(digest(all_patterns(DType::float8_e5m2fnuz)) == 0x94ae6fc493d49818u);
  CHECK(digest(all_patterns(DType::float8_e8m0fnu)) == 0x6d2c8b41c3f0e5a5u);
}

TEST_CASE("all patterns of float16 follow IEEE 754") {
  const std::vector<float> values = all_patterns(DType::float16);
  int wrong = 0;
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    const int exponent = static_cast<int>(bits >> 10 & 31);
    const int mantissa = static_cast<int>(bits & 1023);
    double expected = exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
    if (exponent == 31) {
      expected =
          mantissa == 0 ? std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
    }
    if (!same(values[bits], static_cast<float>((bits & 0x8000) != 0 ? -expected : expected))) ++wrong;
  }
  CHECK(wrong == 0);
}

TEST_CASE("all patterns of the float8 types follow their definitions") {
  struct Format {
    DType dtype;
    int mantissa_bits;
    int bias;
    bool fnuz;
  };
  for (const Format& format :
       {Format{DType::float8_e4m3fn, 3, 7, false}, Format{DType::float8_e5m2, 2, 15, false},
        Format{DType::float8_e4m3fnuz, 3, 8, true}, Format{DType::float8_e5m2fnuz, 2, 16, true}}) {
    CAPTURE(info(format.dtype).name);
    const std::vector<float> values = all_patterns(format.dtype);
    for (int bits = 0; bits < 256; ++bits) {
      const int size = bits & 0x7f;
      const int exponent = size >> format.mantissa_bits;
      const int one = 1 << format.mantissa_bits;
      double expected = exponent == 0
                            ? std::ldexp(size, 1 - format.bias - format.mantissa_bits)
                            : std::ldexp(size % one + one, exponent - format.bias - format.mantissa_bits);
      if (format.dtype == DType::float8_e5m2 && size >= 0x7c) {
        expected = size == 0x7c ? HUGE_VAL : std::numeric_limits<double>::quiet_NaN();
      }
      if (format.dtype == DType::float8_e4m3fn && size == 0x7f)
        expected = std::numeric_limits<double>::quiet_NaN();
      if (format.fnuz && bits == 0x80) expected = std::numeric_limits<double>::quiet_NaN();
      CAPTURE(bits);
      CHECK(same(values[static_cast<std::size_t>(bits)],
                 static_cast<float>(bits >= 0x80 ? -expected : expected)));
    }
  }
  const std::vector<float> powers = all_patterns(DType::float8_e8m0fnu);
  for (int bits = 0; bits < 255; ++bits) {
    CHECK(powers[static_cast<std::size_t>(bits)] == static_cast<float>(std::ldexp(1.0, bits - 127)));
  }
  CHECK(std::isnan(powers[255]));
}

TEST_CASE("known narrow values") {
  CHECK(all_patterns(DType::float8_e4m3fn)[0x7e] == 448.0f);
  CHECK(all_patterns(DType::float8_e5m2)[0x7b] == 57344.0f);
  CHECK(all_patterns(DType::float8_e4m3fnuz)[0x7f] == 240.0f);
  CHECK(all_patterns(DType::float16)[0x7bff] == 65504.0f);
  CHECK(all_patterns(DType::float16)[0x0001] == 0x1p-24f);
  CHECK(all_patterns(DType::bfloat16)[0x3fc0] == 1.5f);
}

TEST_CASE("float conversions read from any address and any length") {
  for (const DType dtype : {DType::float32, DType::float16, DType::bfloat16, DType::float8_e5m2}) {
    CAPTURE(info(dtype).name);
    const std::size_t size = info(dtype).size;
    std::vector<std::byte> raw(70 * size + 8);
    for (std::size_t i = 0; i < raw.size(); ++i) raw[i] = static_cast<std::byte>(i * 37 + 11);
    for (std::size_t offset = 0; offset < 4; ++offset) {
      for (std::size_t n = 0; n <= 70; ++n) {
        std::vector<float> together(n);
        to_float(dtype, std::span(raw).subspan(offset, n * size), together);
        bool equal = true;
        for (std::size_t i = 0; i < n; ++i) {
          std::vector<std::byte> aligned(size);
          std::memcpy(aligned.data(), raw.data() + offset + i * size, size);
          float alone = 0;
          to_float(dtype, aligned, std::span(&alone, 1));
          equal = equal && same(alone, together[i]);
        }
        CHECK(equal);
      }
    }
  }
}

TEST_CASE("integers and bool to double") {
  CHECK(doubles<std::int8_t>(DType::int8, {-128, -1, 0, 127}) == std::vector<double>{-128, -1, 0, 127});
  CHECK(doubles<std::int8_t>(DType::qint8, {-128, 127}) == std::vector<double>{-128, 127});
  CHECK(doubles<std::uint8_t>(DType::uint8, {0, 255}) == std::vector<double>{0, 255});
  CHECK(doubles<std::uint8_t>(DType::quint8, {0, 255}) == std::vector<double>{0, 255});
  CHECK(doubles<std::int16_t>(DType::int16, {-32768, 32767}) == std::vector<double>{-32768, 32767});
  CHECK(doubles<std::uint16_t>(DType::uint16, {0, 65535}) == std::vector<double>{0, 65535});
  CHECK(doubles<std::int32_t>(DType::int32, {INT32_MIN, INT32_MAX}) ==
        std::vector<double>{-2147483648.0, 2147483647});
  CHECK(doubles<std::int32_t>(DType::qint32, {INT32_MIN, -1}) == std::vector<double>{-2147483648.0, -1});
  CHECK(doubles<std::uint32_t>(DType::uint32, {UINT32_MAX}) == std::vector<double>{4294967295.0});
  CHECK(doubles<std::int64_t>(DType::int64, {(std::int64_t{1} << 53) + 1, INT64_MIN}) ==
        std::vector<double>{0x1p53, -0x1p63});
  CHECK(doubles<std::uint64_t>(DType::uint64, {UINT64_MAX, (std::uint64_t{1} << 53) + 3}) ==
        std::vector<double>{0x1p64, 0x1p53 + 4});
  CHECK(doubles<std::uint8_t>(DType::boolean, {0, 1, 2, 255}) == std::vector<double>{0, 1, 1, 1});
}

TEST_CASE("floats and complex numbers to double") {
  CHECK(doubles<double>(DType::float64, {0.1, -0.0}) == std::vector<double>{0.1, 0});
  CHECK(doubles<float>(DType::float32, {0.1f, 1e-45f}) == std::vector<double>{0.1f, 1e-45f});
  CHECK(doubles<std::uint16_t>(DType::float16, {0x3c00, 0x8001}) == std::vector<double>{1, -0x1p-24});
  CHECK(doubles<std::uint16_t>(DType::bfloat16, {0x0001}) == std::vector<double>{0x1p-133});
  CHECK(doubles<std::uint8_t>(DType::float8_e8m0fnu, {0, 254}) == std::vector<double>{0x1p-127, 0x1p127});
  CHECK(doubles<std::uint16_t>(DType::complex32, {0x3c00, 0xc000}, 2) == std::vector<double>{1, -2});
  CHECK(doubles<float>(DType::complex64, {1, -5, 2, 0}, 2) == std::vector<double>{1, -5, 2, 0});
  CHECK(doubles<double>(DType::complex128, {1, -5}, 2) == std::vector<double>{1, -5});
  // Longer than any inner buffer.
  const std::vector<double> many =
      doubles<std::uint16_t>(DType::float16, std::vector<std::uint16_t>(1025, 0x4200));
  CHECK(many == std::vector<double>(1025, 3.0));
}

TEST_CASE("lying sizes and types that do not fit are refused before any byte is read") {
  const std::vector<std::byte> raw(7);
  std::vector<float> floats(2);
  std::vector<double> numbers(2);
  CHECK_THROWS_AS(to_float(DType::float32, raw, floats), std::logic_error);
  CHECK_THROWS_AS(to_double(DType::int32, raw, numbers), std::logic_error);
  CHECK_THROWS_AS(to_double(DType::complex64, raw, numbers), std::logic_error);
  CHECK_THROWS_AS(to_float(DType::int8, raw, floats), std::logic_error);
}

TEST_CASE("byte order is reversed component by component") {
  const auto swapped = [](DType dtype, std::vector<std::uint8_t> values) {
    swap_bytes(dtype, std::as_writable_bytes(std::span(values)));
    return values;
  };
  using Bytes = std::vector<std::uint8_t>;
  CHECK(swapped(DType::uint8, {1, 2}) == Bytes{1, 2});
  CHECK(swapped(DType::float16, {1, 2, 3, 4}) == Bytes{2, 1, 4, 3});
  CHECK(swapped(DType::int32, {1, 2, 3, 4}) == Bytes{4, 3, 2, 1});
  CHECK(swapped(DType::float64, {1, 2, 3, 4, 5, 6, 7, 8}) == Bytes{8, 7, 6, 5, 4, 3, 2, 1});
  CHECK(swapped(DType::complex32, {1, 2, 3, 4}) == Bytes{2, 1, 4, 3});
  CHECK(swapped(DType::complex64, {1, 2, 3, 4, 5, 6, 7, 8}) == Bytes{4, 3, 2, 1, 8, 7, 6, 5});
  CHECK(swapped(DType::complex128, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}) ==
        Bytes{8, 7, 6, 5, 4, 3, 2, 1, 16, 15, 14, 13, 12, 11, 10, 9});
}

}  // namespace msprobe::tensor::convert_test
