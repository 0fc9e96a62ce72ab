// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/metrics.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <tuple>

#include "unit/checkpoint/memory_tensor.hpp"

namespace msprobe::checkpoint::metrics_test {
namespace {

using tensor::DType;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

template <typename T>
PairMetrics compared(DType dtype, const std::vector<T>& a, const std::vector<T>& b) {
  const auto size = static_cast<std::int64_t>(a.size());
  return measure(in_memory(dtype, {size}, a), in_memory(dtype, {size}, b), {.ulp = true, .on_bytes = {}});
}

PairMetrics doubles(const std::vector<double>& a, const std::vector<double>& b) {
  return compared(DType::float64, a, b);
}

PairMetrics floats(const std::vector<float>& a, const std::vector<float>& b) {
  return compared(DType::float32, a, b);
}

}  // namespace

TEST_CASE("l2 and cosine agree with extended precision") {
  std::mt19937 random(11);
  std::normal_distribution<float> normal;
  std::vector<float> a(100'003);
  std::vector<float> b(a.size());
  long double squares = 0;
  long double dot = 0;
  long double aa = 0;
  long double bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = normal(random);
    b[i] = a[i] + 0.01F * normal(random);
    const long double x = a[i];
    const long double y = b[i];
    squares += (x - y) * (x - y);
    dot += x * y;
    aa += x * x;
    bb += y * y;
  }
  const PairMetrics metrics = floats(a, b);
  CHECK(metrics.l2 == doctest::Approx(static_cast<double>(std::sqrt(squares))).epsilon(1e-13));
  CHECK(*metrics.cosine == doctest::Approx(static_cast<double>(dot / std::sqrt(aa * bb))).epsilon(1e-13));
  CHECK(metrics.relative_l2 == doctest::Approx(static_cast<double>(std::sqrt(squares / bb))).epsilon(1e-13));
  CHECK(!metrics.bitwise_equal);
}

TEST_CASE("numbers whose squares leave the range of double") {
  const PairMetrics tiny = doubles({1e-200, 2e-200, 0}, {1e-200, 0, 0});
  CHECK(tiny.l2 == doctest::Approx(2e-200).epsilon(1e-12));
  CHECK(*tiny.cosine == doctest::Approx(1 / std::sqrt(5.0)).epsilon(1e-12));
  const PairMetrics huge = doubles({1e200, -1e200}, {-1e200, -1e200});
  CHECK(huge.l2 == doctest::Approx(2e200).epsilon(1e-12));
  CHECK(*huge.cosine == doctest::Approx(0).epsilon(1e-12));
  const PairMetrics far = doubles({1.7e308, 0}, {-1.7e308, 1});
  CHECK(far.l2 == kInfinity);  // 3.4e308 is beyond double
  CHECK(*far.cosine == doctest::Approx(-1));
  // A small difference between numbers of ordinary size.
  const PairMetrics close = doubles({1.0, 1e-200}, {1.0, 0});
  CHECK(close.l2 == doctest::Approx(1e-200).epsilon(1e-12));
  const PairMetrics denormal = doubles({5e-324}, {1e-323});
  CHECK(denormal.l2 == 5e-324);
  CHECK(*denormal.cosine == 1.0);
  CHECK(denormal.first.denormal == 1);
}

TEST_CASE("zeros, NaN and infinities as the Python tool has them") {
  CHECK(*floats({0, 0}, {0, 0}).cosine == 1.0);
  CHECK(floats({0, 0}, {0, 0}).l2 == 0);
  CHECK(!floats({0, 0}, {1, 0}).cosine);
  CHECK(!floats({1, 0}, {0, 0}).cosine);
  CHECK(floats({1, 0}, {0, 0}).relative_l2 == kInfinity);
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  const auto inf = std::numeric_limits<float>::infinity();
  const PairMetrics both_nan = floats({nan, 1}, {nan, 1});
  CHECK(std::isnan(both_nan.l2));
  CHECK(std::isnan(*both_nan.cosine));
  CHECK(both_nan.bitwise_equal);
  CHECK(both_nan.unequal == 0);
  CHECK(std::isnan(floats({inf, 1}, {inf, 1}).l2));
  CHECK(floats({inf, 1}, {2, 1}).l2 == kInfinity);
  CHECK(floats({inf, 1}, {-inf, 1}).l2 == kInfinity);
  CHECK(std::isnan(floats({inf, inf}, {inf, -inf}).l2));
  CHECK(std::isnan(*floats({inf, 1}, {2, 1}).cosine));
  CHECK(floats({inf, nan, 0}, {2, 1, 0}).first.infinite == 1);
}

TEST_CASE("without counts NaN and infinities of equal parameters are seen") {
  const auto l2 = []<typename T>(DType dtype, std::vector<T> values, std::size_t place, T special) {
    values[place] = special;
    const auto size = static_cast<std::int64_t>(values.size());
    const Parameter parameter = in_memory(dtype, {size}, values);
    return measure(parameter, parameter, {.ulp = false, .counts = false, .on_bytes = {}}).l2;
  };
  for (const std::size_t place : {std::size_t{0}, std::size_t{511}, std::size_t{40'002}}) {
    CHECK(std::isnan(l2(DType::float32, std::vector<float>(40'003, -3.4e38F), place, std::nanf(""))));
    CHECK(l2(DType::float32, std::vector<float>(40'003, -3.4e38F), place, 1.0F) == 0);
    CHECK(std::isnan(l2(DType::float64, std::vector<double>(40'003, 1.7e308), place, -kInfinity)));
    CHECK(l2(DType::float64, std::vector<double>(40'003, 1.7e308), place, 0.0) == 0);
    for (const auto& [dtype, largest, infinite] :
         {std::tuple(DType::float16, 0xfbff, 0x7c00), std::tuple(DType::bfloat16, 0xff7f, 0xff80)}) {
      const std::vector<std::uint16_t> values(40'003, static_cast<std::uint16_t>(largest));
      CHECK(std::isnan(l2(dtype, values, place, static_cast<std::uint16_t>(infinite))));
      CHECK(l2(dtype, values, place, static_cast<std::uint16_t>(largest)) == 0);
    }
    CHECK(l2(DType::int32, std::vector<std::int32_t>(40'003, -1), place, 0x7f800000) == 0);
  }
}

TEST_CASE("zeros of other sign are equal values, not equal bits") {
  const PairMetrics metrics = floats({0.0F, 1}, {-0.0F, 1});
  CHECK(!metrics.bitwise_equal);
  CHECK(metrics.unequal == 0);
  CHECK(metrics.l2 == 0);
  CHECK(*metrics.cosine == 1.0);
  CHECK(*metrics.max_ulp == 0);
}

TEST_CASE("integers are exact beyond 2^53") {
  const std::int64_t big = (std::int64_t{1} << 53) + 1;
  const PairMetrics metrics = compared<std::int64_t>(DType::int64, {big, 5}, {big - 1, 5});
  CHECK(metrics.l2 == 1);
  CHECK(metrics.unequal == 1);
  CHECK(metrics.first_unequal == 0);
  CHECK(!metrics.max_ulp);
}

TEST_CASE("distances in units of the last place") {
  const float next = std::nextafter(1.0F, 2.0F);
  CHECK(*floats({1, 1}, {1, next}).max_ulp == 1);
  CHECK(*floats({std::nextafter(0.0F, -1.0F)}, {std::nextafter(0.0F, 1.0F)}).max_ulp == 2);
  CHECK(*floats({-1}, {std::nextafter(-1.0F, -2.0F)}).max_ulp == 1);
  CHECK(*doubles({1}, {1 + 3 * std::numeric_limits<double>::epsilon()}).max_ulp == 3);
  CHECK(*doubles({kNan, 1}, {1, 1}).max_ulp == 0);
  CHECK(*compared<std::uint16_t>(DType::bfloat16, {0x3f80}, {0x3f83}).max_ulp == 3);
  CHECK(*compared<std::uint16_t>(DType::float16, {0x8001}, {0x0001}).max_ulp == 2);
}

TEST_CASE("numbers below the normal ones of half precision are counted as such") {
  const PairMetrics metrics =
      compared<std::uint16_t>(DType::float16, {0x0001, 0x83ff, 0x0400, 0}, {0, 0, 0, 0});
  CHECK(metrics.first.denormal == 2);
  CHECK(metrics.first.zero == 1);
  CHECK(metrics.second.denormal == 0);
}

TEST_CASE("other types are compared as values") {
  const Parameter half = in_memory<std::uint16_t>(DType::bfloat16, {2}, {0x3f80, 0x4000});  // 1, 2
  const Parameter single = in_memory<float>(DType::float32, {2}, {1, 2});
  const PairMetrics metrics = measure(half, single);
  CHECK(metrics.l2 == 0);
  CHECK(metrics.unequal == 0);
  CHECK(!metrics.bitwise_equal);
  const Parameter complex = in_memory<float>(DType::complex64, {2}, {1, 0, 2, 3});
  CHECK(measure(complex, single).l2 == doctest::Approx(3));
  CHECK(measure(single, complex).max_abs == 3);
}

TEST_CASE("scalars and empty parameters") {
  CHECK(measure(in_memory<float>(DType::float32, {}, {3}), in_memory<float>(DType::float32, {}, {-1})).l2 ==
        4);
  const PairMetrics empty = floats({}, {});
  CHECK(empty.l2 == 0);
  CHECK(*empty.cosine == 1.0);
  CHECK(empty.bitwise_equal);
}

TEST_CASE("copies are the same but for the bits of NaN and the sign of zero") {
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  const Parameter a = in_memory<float>(DType::float32, {3}, {nan, 0.0F, 2});
  CHECK(measure(a, in_memory<float>(DType::float32, {3}, {-nan, -0.0F, 2})).unequal == 0);
  const PairMetrics check = measure(a, in_memory<float>(DType::float32, {3}, {nan, 0.5F, 2}));
  CHECK(check.unequal == 1);
  CHECK(check.max_abs == 0.5);
}

TEST_CASE("how the bytes were cut does not change a single bit of the result") {
  std::mt19937 random(2);
  std::normal_distribution<float> normal;
  std::vector<float> a(70'000);
  std::vector<float> b(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    a[i] = normal(random);
    b[i] = normal(random);
  }
  const Parameter x = in_memory(DType::float32, {700, 100}, a);
  const Parameter y = in_memory(DType::float32, {700, 100}, b);
  const PairMetrics once = measure(x, y);
  const Parameter cut = concatenate({narrow(x, 1, 0, 33), narrow(x, 1, 33, 67)}, 1);
  const PairMetrics again = measure(cut, y);
  CHECK(again.l2 == once.l2);
  CHECK(*again.cosine == *once.cosine);
}

TEST_CASE("complex elements are counted and named as elements") {
  using Complex = std::complex<float>;
  const PairMetrics metrics =
      compared<Complex>(DType::complex64, {{1, 2}, {3, 4}, {5, 6}}, {{1, 2}, {3, 5}, {7, 8}});
  CHECK(metrics.unequal == 2);
  CHECK(metrics.first_unequal == 1);
}

TEST_CASE("a side that is the other one rounded") {
  // 1 + 2^-9 is between two bfloat16 numbers; 1 + 2^-8 is halfway and goes to the even one.
  const Parameter wide = in_memory<float>(DType::float32, {4}, {1.001953125F, 1.00390625F, -3.4e38F, 1e-40F});
  const auto narrow = [](std::vector<std::uint16_t> bits) {
    return in_memory<std::uint16_t>(DType::bfloat16, {4}, bits);
  };
  const Parameter good = narrow({0x3f80, 0x3f80, 0xff80, 0x0001});
  for (const bool turned : {false, true}) {
    const PairMetrics metrics = turned ? measure(good, wide) : measure(wide, good);
    CHECK(metrics.unrounded.holds());
    CHECK(metrics.unequal == 4);
  }
  const PairMetrics off = measure(wide, narrow({0x3f80, 0x3f81, 0xff80, 0x0002}));
  CHECK(!off.unrounded.holds());
  CHECK(off.unrounded.count == 2);
  CHECK(off.unrounded.first == 1);
  CHECK(!measure(wide, in_memory<std::int32_t>(DType::int32, {4}, {1, 1, 0, 0})).unrounded.tried);
}

TEST_CASE("the fast ways of rounding are those of the general one") {
  // All exponents and the ties of both types, of either sign.
  std::mt19937 random(5);
  std::vector<float> wide;
  std::vector<double> wider;
  for (std::uint32_t i = 0; i < 200'000; ++i) {
    auto bits = static_cast<std::uint32_t>(random());
    if (i % 3 == 1) bits = (bits & 0xffffe000U) | 0x1000U;
    if (i % 3 == 2) bits = (bits & 0xffff0000U) | 0x8000U;
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    wide.push_back(std::isnan(value) ? 0.0F : value);
    wider.push_back(static_cast<double>(wide.back()) * (1 + 0x1p-25));
  }
  const auto size = static_cast<std::int64_t>(wide.size());
  const Parameter first = in_memory(DType::float32, {size}, wide);
  std::vector<std::uint16_t> bfloat;
  std::vector<std::uint16_t> half;
  std::vector<float> single;
  for (std::size_t i = 0; i < wide.size(); ++i) {
    const auto rounded = static_cast<float>(rounded_to(wide[i], DType::bfloat16));
    std::uint32_t bits = 0;
    std::memcpy(&bits, &rounded, sizeof bits);
    bfloat.push_back(static_cast<std::uint16_t>(bits >> 16));
    // The standard has a sign, an exponent and ten digits.
    const double value = rounded_to(wide[i], DType::float16);
    const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
    const double size_of = std::fabs(value);
    std::uint16_t magnitude = 0x7c00;
    if (size_of < 0x1p-14) {
      magnitude = static_cast<std::uint16_t>(size_of * 0x1p24);
    } else if (std::isfinite(size_of)) {
      const int exponent = std::ilogb(size_of);
      magnitude = static_cast<std::uint16_t>(((exponent + 15) << 10) +
                                             static_cast<int>(std::ldexp(size_of, 10 - exponent)) - 1024);
    }
    half.push_back(sign | magnitude);
    single.push_back(static_cast<float>(rounded_to(wider[i], DType::float32)));
  }
  CHECK(measure(first, in_memory(DType::bfloat16, {size}, bfloat)).unrounded.count == 0);
  CHECK(measure(first, in_memory(DType::float16, {size}, half)).unrounded.count == 0);
  CHECK(measure(in_memory(DType::float64, {size}, wider), in_memory(DType::float32, {size}, single))
            .unrounded.count == 0);
}

TEST_CASE("rounding to each type") {
  CHECK(rounded_to(65519.0, DType::float16) == 65504.0);
  CHECK(rounded_to(65520.0, DType::float16) == kInfinity);
  CHECK(rounded_to(-1e300, DType::float16) == -kInfinity);
  CHECK(rounded_to(0x1p-25, DType::float16) == 0.0);  // half of the smallest, to even
  CHECK(rounded_to(0x1.8p-25, DType::float16) == 0x1p-24);
  CHECK(rounded_to(0x1.000001p0, DType::float32) == 1.0);
  CHECK(rounded_to(0x1.000003p0, DType::float32) == 0x1.000004p0);
  CHECK(rounded_to(449.0, DType::float8_e4m3fn) == 448.0);
  CHECK(std::isnan(rounded_to(1000.0, DType::float8_e4m3fn)));
  CHECK(rounded_to(0x1p-10, DType::float8_e4m3fn) == 0.0);
  CHECK(rounded_to(1.1, DType::float8_e5m2) == 1.0);
  CHECK(rounded_to(0.1, DType::float64) == 0.1);
}

}  // namespace msprobe::checkpoint::metrics_test
