// SPDX-License-Identifier: Apache-2.0
// The expected texts are NumPy's.
#include "formats/element_values.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "support/byte_source.hpp"

namespace msprobe::formats::element_values_test {
namespace {

using tensor::DType;
using Texts = std::vector<std::string>;

template <typename T>
StoredTensor make(DType dtype, const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  StoredTensor tensor;
  tensor.dtype = dtype;
  tensor.shape = {static_cast<std::int64_t>(bytes.size() / tensor::info(dtype).size)};
  tensor.strides = {1};
  tensor.storage = memory_source(std::move(bytes));
  return tensor;
}

}  // namespace

TEST_CASE("elements as NumPy prints them") {
  CHECK(first_elements(make<float>(DType::float32, {0.1F, 1e-45F, 3.4028235e38F, 1e16F, 1e-5F, 123456.789F}),
                       9) == Texts{"0.1", "1e-45", "3.4028235e+38", "1e+16", "1e-05", "123456.79"});
  CHECK(first_elements(make<float>(DType::float32, {0.0F, -0.0F, INFINITY, -INFINITY, NAN, 16777216.0F}),
                       9) == Texts{"0.0", "-0.0", "inf", "-inf", "nan", "16777216.0"});
  CHECK(first_elements(make<double>(DType::float64, {0.1, 1.0 / 3}), 9) ==
        Texts{"0.1", "0.3333333333333333"});
  // 0.1, 1/3, 65504, the two smallest denormals, 0.0999.
  CHECK(first_elements(make<std::uint16_t>(DType::float16, {0x2e66, 0x3555, 0x7bff, 0x0001, 0x0002, 0x2e65}),
                       9) == Texts{"0.1", "0.3333", "65500.0", "6e-08", "1e-07", "0.0999"});
  CHECK(first_elements(make<std::uint16_t>(DType::bfloat16, {0x3f80, 0x3dcd, 0xc2f7}), 9) ==
        Texts{"1.0", "0.1", "-123.5"});
  CHECK(first_elements(make<std::uint8_t>(DType::float8_e4m3fn, {0x38, 0x7e, 0x7f}), 9).front() == "1.0");
  CHECK(first_elements(make<std::int64_t>(DType::int64, {INT64_MIN, INT64_MAX}), 9) ==
        Texts{"-9223372036854775808", "9223372036854775807"});
  CHECK(first_elements(make<std::uint64_t>(DType::uint64, {UINT64_MAX}), 9) == Texts{"18446744073709551615"});
  CHECK(first_elements(make<std::uint8_t>(DType::boolean, {0, 1}), 9) == Texts{"False", "True"});
  CHECK(first_elements(make<float>(DType::complex64, {1, 2, 0.5F, -1, NAN, 1}), 9) ==
        Texts{"(1+2j)", "(0.5-1j)", "(nan+1j)"});
  CHECK(first_elements(make<float>(DType::float32, {1, 2, 3}), 2) == Texts{"1.0", "2.0"});
  CHECK(first_elements(make<float>(DType::float32, {}), 2).empty());
}

TEST_CASE("every half reads back from its text") {
  for (std::uint32_t bits = 0; bits < 0x7c00; bits += 7) {
    const StoredTensor half = make<std::uint16_t>(DType::float16, {static_cast<std::uint16_t>(bits)});
    const double value = ValueReader(half).read(1)[0];
    const double read = std::stod(first_elements(half, 1)[0]);
    // A neighbour would be at least this far away.
    const double step = std::ldexp(1.0, std::max(value == 0 ? -14 : std::ilogb(value), -14) - 10);
    CAPTURE(bits);
    CHECK(std::fabs(read - value) < step / 2);
  }
}

TEST_CASE("computed numbers are rounded to the type they came from") {
  CHECK(number_text(0.7 / 3, DType::float16) == "0.2333");
  CHECK(number_text(0.7 / 3, DType::float32) == "0.23333333");
  CHECK(number_text(0.7 / 3, DType::float64) == "0.2333333333333333");
  CHECK(number_text(NAN, DType::float16) == "nan");
  CHECK(float_text(0.99964595F) == "0.99964595");
}

TEST_CASE("statistics over every kind of element") {
  const tensor::Statistics real =
      statistics_of(make<float>(DType::float32, {3, -4, 0, 1e-40F, NAN, INFINITY}));
  CHECK(real.count == 6);
  CHECK(real.nan == 1);
  CHECK(real.pos_inf == 1);
  CHECK(real.zero == 1);
  CHECK(real.denormal == 1);
  CHECK(real.min == -4);
  const tensor::Statistics complex = statistics_of(make<double>(DType::complex128, {3, 4, 0, 0, 1e-310, 1}));
  CHECK(complex.count == 3);
  CHECK(complex.max == 5);
  CHECK(complex.min == 0);
  CHECK(complex.zero == 1);
  CHECK(complex.denormal == 1);
  CHECK(complex.norm() == doctest::Approx(std::sqrt(26.0)));
  const tensor::Statistics whole = statistics_of(make<std::int64_t>(DType::int64, {-3, 4, 0}));
  CHECK(whole.max == 4);
  CHECK(whole.min == -3);
  CHECK(whole.mean() == doctest::Approx(1.0 / 3));
  CHECK(statistics_of(make<float>(DType::float32, {})).count == 0);
}

TEST_CASE("denormals are those of the stored type, not of the type it is widened to") {
  // The largest denormal and the smallest normal number of each.
  CHECK(statistics_of(make<std::uint16_t>(DType::float16, {0x03ff, 0x0400, 0x83ff, 0})).denormal == 2);
  CHECK(statistics_of(make<std::uint16_t>(DType::bfloat16, {0x007f, 0x0080, 0})).denormal == 1);
  CHECK(statistics_of(make<std::uint8_t>(DType::float8_e4m3fn, {0x07, 0x08, 0})).denormal == 1);
  CHECK(statistics_of(make<std::uint8_t>(DType::float8_e5m2, {0x03, 0x04, 0})).denormal == 1);
  CHECK(statistics_of(make<std::uint8_t>(DType::float8_e8m0fnu, {0x00, 0x01})).denormal == 0);
}

TEST_CASE("complex elements are read as two numbers, in pieces of any size") {
  ValueReader reader(make<float>(DType::complex64, {1, 2, 3, 4, 5, 6}));
  CHECK(reader.numbers_per_element() == 2);
  const auto first = reader.read(2);
  CHECK(std::vector<double>(first.begin(), first.end()) == std::vector<double>{1, 2, 3, 4});
  const auto second = reader.read(100);
  CHECK(std::vector<double>(second.begin(), second.end()) == std::vector<double>{5, 6});
  CHECK(reader.read(1).empty());
}

}  // namespace msprobe::formats::element_values_test
