// SPDX-License-Identifier: Apache-2.0
#include "tensor/difference.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <stdexcept>
#include <type_traits>
#include <vector>

namespace msprobe::tensor::difference_test {
namespace {

template <typename T>
constexpr bool kFloating = std::is_floating_point_v<T>;

template <typename T>
Difference compare(const std::vector<T>& target, const std::vector<T>& golden, Isa isa = best_isa()) {
  DifferenceAccumulator accumulator(isa);
  accumulator.add(std::span<const T>(target), std::span<const T>(golden));
  return accumulator.finish();
}

/// Every number of a result, as bits.
std::vector<std::uint64_t> image(const Difference& d) {
  const auto bits = [](double value) { return std::bit_cast<std::uint64_t>(value); };
  std::vector<std::uint64_t> all = {d.count,
                                    d.nonfinite_mismatch,
                                    d.infinity_sign_mismatch,
                                    d.unequal,
                                    static_cast<std::uint64_t>(d.first_unequal),
                                    bits(d.dot),
                                    bits(d.squares_target),
                                    bits(d.squares_golden),
                                    bits(d.squares_difference),
                                    bits(d.max_abs),
                                    bits(d.max_relative),
                                    d.below_one_thousandth,
                                    d.below_five_thousandths};
  for (const Statistics& s : {d.target, d.golden}) {
    all.insert(all.end(), {s.count, s.nan, s.pos_inf, s.neg_inf, s.zero, s.denormal, bits(s.max), bits(s.min),
                           bits(s.sum), bits(s.sum_of_squares)});
  }
  return all;
}

/// A sum in higher precision together with the sum of the absolute terms, which scales its permitted error.
struct ExactSum {
  long double sum = 0;
  long double size = 0;
  void add(long double term) {
    sum += term;
    size += std::fabs(term);
  }
};

void check_sum(double got, const ExactSum& exact, std::size_t n) {
  if (std::isnan(exact.sum)) {
    CHECK(std::isnan(got));
  } else if (std::isinf(exact.sum)) {
    CHECK(got == static_cast<double>(exact.sum));
  } else {
    const long double bound = (static_cast<long double>((n + 15) / 16) + 18) * 0x1p-53L * exact.size +
                              static_cast<long double>(n) * 0x1p-1074L;
    CHECK(std::fabs(static_cast<long double>(got) - exact.sum) <= bound);
  }
}

template <typename T>
void check_statistics(const Statistics& got, const std::vector<T>& data) {
  std::uint64_t nan = 0, pos_inf = 0, neg_inf = 0, zero = 0, denormal = 0;
  bool any = false;
  double max = 0, min = 0;
  ExactSum sum, squares;
  for (const T value : data) {
    if constexpr (kFloating<T>) {
      nan += std::isnan(value);
      pos_inf += std::isinf(value) && value > 0;
      neg_inf += std::isinf(value) && value < 0;
      denormal += std::fpclassify(value) == FP_SUBNORMAL;
    }
    zero += value == 0;
    const double number = static_cast<double>(value);
    if (!std::isnan(number)) {
      max = any ? std::max(max, number) : number;
      min = any ? std::min(min, number) : number;
      any = true;
    }
    sum.add(value);
    squares.add(static_cast<long double>(value) * value);
  }
  CHECK(got.count == data.size());
  CHECK(got.nan == nan);
  CHECK(got.pos_inf == pos_inf);
  CHECK(got.neg_inf == neg_inf);
  CHECK(got.zero == zero);
  CHECK(got.denormal == denormal);
  if (any) {
    CHECK(got.max == max);
    CHECK(got.min == min);
  } else {
    CHECK(std::isnan(got.max));
    CHECK(std::isnan(got.min));
  }
  check_sum(got.sum, sum, data.size());
  check_sum(got.sum_of_squares, squares, data.size());
}

/// The definition of each number, one element after the other.
template <typename T>
void check_difference(const Difference& got, const std::vector<T>& target, const std::vector<T>& golden) {
  using Real = std::conditional_t<std::is_same_v<T, float>, float, double>;
  std::uint64_t nonfinite = 0, sign = 0, unequal = 0, below_1 = 0, below_5 = 0;
  std::int64_t first = -1;
  ExactSum dot, squares_target, squares_golden, squares_difference;
  double max_abs = 0, max_relative = 0;
  for (std::size_t i = 0; i < target.size(); ++i) {
    T n = target[i], b = golden[i];
    bool equal = n == b;
    if constexpr (kFloating<T>) {
      nonfinite += std::isnan(n) != std::isnan(b) || std::isinf(n) != std::isinf(b);
      sign += std::isinf(n) && std::isinf(b) && std::signbit(n) != std::signbit(b);
      equal = equal || (std::isnan(n) && std::isnan(b));
      if (!std::isfinite(n) || !std::isfinite(b)) n = b = 0;
    }
    if (!equal && first < 0) first = static_cast<std::int64_t>(i);
    unequal += !equal;
    const auto exact =
        static_cast<long double>(n) - static_cast<long double>(b);  // 64-bit mantissa: exact for integers
    dot.add(static_cast<long double>(n) * b);
    squares_target.add(static_cast<long double>(n) * n);
    squares_golden.add(static_cast<long double>(b) * b);
    if constexpr (kFloating<T>) {
      const double difference = static_cast<double>(n) - static_cast<double>(b);
      max_abs = std::max(max_abs, std::fabs(difference));
      squares_difference.add(static_cast<long double>(difference) * difference);
    } else {
      max_abs = std::max(max_abs, static_cast<double>(std::fabs(exact)));
      squares_difference.add(exact * exact);
    }
    Real top = static_cast<Real>(n), bottom = static_cast<Real>(b);
    if (b == 0) {
      top += std::numeric_limits<Real>::epsilon();
      bottom += std::numeric_limits<Real>::epsilon();
    }
    Real relative = std::fabs((top - bottom) / bottom);
    if (n != b && top == bottom) relative = static_cast<Real>(std::fabs(exact)) / std::fabs(bottom);
    max_relative = std::max(max_relative, static_cast<double>(relative));
    below_1 += relative < static_cast<Real>(0.001);
    below_5 += relative < static_cast<Real>(0.005);
  }
  CHECK(got.count == target.size());
  CHECK(got.nonfinite_mismatch == nonfinite);
  CHECK(got.infinity_sign_mismatch == sign);
  CHECK(got.unequal == unequal);
  CHECK(got.first_unequal == first);
  check_sum(got.dot, dot, target.size());
  check_sum(got.squares_target, squares_target, target.size());
  check_sum(got.squares_golden, squares_golden, target.size());
  check_sum(got.squares_difference, squares_difference, target.size());
  CHECK(got.max_abs == max_abs);
  CHECK(got.max_relative == max_relative);
  CHECK(got.below_one_thousandth == below_1);
  CHECK(got.below_five_thousandths == below_5);
  check_statistics(got.target, target);
  check_statistics(got.golden, golden);
}

enum class Mix { ordinary, zeros_and_denormals, nonfinite };

template <typename T>
T random_value(std::mt19937_64& random, Mix mix) {
  if constexpr (kFloating<T>) {
    using Limits = std::numeric_limits<T>;
    const auto pick = random() % 16;
    if (mix != Mix::ordinary && pick == 0) return T{0};
    if (mix != Mix::ordinary && pick == 1) return -T{0};
    if (mix != Mix::ordinary && pick == 2) return Limits::denorm_min() * static_cast<T>(random() % 1000);
    if (mix != Mix::ordinary && pick == 3) return -Limits::min() / 2;
    if (mix == Mix::nonfinite && pick == 4) return Limits::infinity();
    if (mix == Mix::nonfinite && pick == 5) return -Limits::infinity();
    if (mix == Mix::nonfinite && pick == 6) return Limits::quiet_NaN();
    if (mix == Mix::nonfinite && pick == 7) return -Limits::signaling_NaN();
    if (pick == 8) return static_cast<T>(std::is_same_v<T, float> ? 3e38 : 1e150);
    if (pick == 9) return static_cast<T>(std::is_same_v<T, float> ? 1e-38 : 1e-150);
    return static_cast<T>(std::normal_distribution<double>()(random));
  } else {
    const auto pick = random() % 8;
    if (pick == 0) return 0;
    if (pick == 1) return std::numeric_limits<T>::max();
    if (pick == 2) return std::numeric_limits<T>::min();
    if (pick == 3) return static_cast<T>(random());
    return static_cast<T>(random() % 1000);
  }
}

template <typename T>
T neighbour(T value) {
  if constexpr (kFloating<T>) {
    return value + 1;
  } else {
    return static_cast<T>(static_cast<std::uint64_t>(value) + 1);
  }
}

template <typename T>
struct Pair {
  std::vector<T> target, golden;
};

template <typename T>
Pair<T> random_pair(std::mt19937_64& random, std::size_t n, Mix mix) {
  Pair<T> pair;
  for (std::size_t i = 0; i < n; ++i) {
    pair.golden.push_back(random_value<T>(random, mix));
    switch (random() % 4) {
      case 0:
        pair.target.push_back(random_value<T>(random, mix));
        break;
      case 1:
        pair.target.push_back(pair.golden.back());
        break;
      case 2:
        pair.target.push_back(neighbour(pair.golden.back()));
        break;
      default:
        pair.target.push_back(kFloating<T> ? static_cast<T>(pair.golden.back() * static_cast<T>(1.002))
                                           : pair.golden.back());
    }
  }
  return pair;
}

/// Whole or cut at random places, from aligned or odd addresses.
template <typename T>
Difference compare_in_pieces(const Pair<T>& pair, Isa isa, std::mt19937_64& random) {
  DifferenceAccumulator accumulator(isa);
  const std::size_t n = pair.target.size();
  for (std::size_t at = 0; at < n;) {
    const std::size_t size = std::min<std::size_t>(n - at, random() % (random() % 4 == 0 ? 5000 : 40));
    const std::size_t shift = random() % 3;
    std::vector<T> target(shift), golden((shift + 1) % 3);
    const std::size_t skip = golden.size();
    const auto begin = static_cast<std::ptrdiff_t>(at), end = static_cast<std::ptrdiff_t>(at + size);
    target.insert(target.end(), pair.target.begin() + begin, pair.target.begin() + end);
    golden.insert(golden.end(), pair.golden.begin() + begin, pair.golden.begin() + end);
    accumulator.add(std::span<const T>(target).subspan(shift), std::span<const T>(golden).subspan(skip));
    at += size;
  }
  return accumulator.finish();
}

// The doctest header of Debian 12 prints no vectors, so the comparison is reduced to a bool.
bool same_bits(const Difference& a, const Difference& b) {
  return image(a) == image(b);
}

double cosine(const Difference& d) {
  return d.dot / (std::sqrt(d.squares_target) * std::sqrt(d.squares_golden));
}

}  // namespace

TEST_CASE_TEMPLATE("every instruction set agrees with the definitions at every length", T, float, double,
                   std::int64_t, std::uint64_t) {
  std::mt19937_64 random(20240607);
  for (const Isa isa : available_isas()) {
    CAPTURE(isa_name(isa));
    for (const Mix mix : {Mix::ordinary, Mix::zeros_and_denormals, Mix::nonfinite}) {
      for (std::size_t n = 0; n <= 70; ++n) {
        CAPTURE(n);
        const Pair<T> pair = random_pair<T>(random, n, mix);
        check_difference(compare(pair.target, pair.golden, isa), pair.target, pair.golden);
      }
      for (const std::size_t n : {2047u, 2048u, 4111u, 20001u}) {
        CAPTURE(n);
        const Pair<T> pair = random_pair<T>(random, n, mix);
        check_difference(compare(pair.target, pair.golden, isa), pair.target, pair.golden);
      }
    }
  }
}

TEST_CASE_TEMPLATE("the bits depend neither on the instruction set nor on cuts nor on addresses", T, float,
                   double, std::int64_t, std::uint64_t) {
  std::mt19937_64 random(77);
  for (int round = 0; round < 40; ++round) {
    Pair<T> pair =
        random_pair<T>(random, random() % (round % 4 == 0 ? 20000 : 200), static_cast<Mix>(round % 3));
    if (round % 5 == 0 && kFloating<T> && pair.target.size() > 1) {
      // One bad element late in clean data: the blocks before it took another path than those after it.
      pair.target[pair.target.size() * 3 / 4] = std::numeric_limits<T>::quiet_NaN();
    }
    const Difference expected = compare(pair.target, pair.golden, Isa::scalar);
    for (const Isa isa : available_isas()) {
      CAPTURE(isa_name(isa));
      CHECK(same_bits(compare(pair.target, pair.golden, isa), expected));
      CHECK(same_bits(compare_in_pieces(pair, isa, random), expected));
    }
  }
}

TEST_CASE("overflowing sums of doubles give the same bits everywhere") {
  std::mt19937_64 random(5);
  std::vector<double> target, golden;
  for (int i = 0; i < 1000; ++i) {
    target.push_back((random() % 2 == 0 ? 1 : -1) * 1e300);
    golden.push_back((random() % 2 == 0 ? 1 : -1) * 1.7e308);
  }
  const Difference expected = compare(target, golden, Isa::scalar);
  CHECK(std::isnan(expected.dot));
  CHECK(expected.squares_target == HUGE_VAL);
  CHECK(expected.max_abs == 1.7e308 + 1e300);
  for (const Isa isa : available_isas()) CHECK(same_bits(compare(target, golden, isa), expected));
}

TEST_CASE("the reference values of the Python tool, float32") {
  struct Row {
    const char* name;
    std::vector<float> target, golden;
    double cosine, distance, max_abs, max_relative;
    std::uint64_t below_1, below_5;
  };
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Row rows[] = {
      {"diff", {1, 2, 3.5f}, {1, 2, 3}, 0.997408650736, 0.5, 0.5, 0.166666671634, 2, 2},
      {"tiny", {1.0001f, 2, 3}, {1, 2, 3}, 1, 0.00010001659393310547, 0.000100016594, 0.000100016594, 3, 3},
      {"cos6", {1, 2, 3.05f}, {1, 2, 3}, 0.999969, 0.04999995231628418, 0.049999952316, 0.016666650772, 2, 2},
      {"cos12",
       {1, 2, 3.2f},
       {1, 2, 3},
       0.999531198485,
       0.20000004768371582,
       0.200000047684,
       0.066666685045,
       2,
       2},
      {"neg", {-1, -2, -3}, {1, 2, 3}, -1, 7.483314773547883, 6, 2, 0, 0},
      {"nansame", {1, nan, 3}, {1.5f, nan, 3}, 0.989949493661, 0.5, 0.5, 0.333333343267, 2, 2},
      {"bench0elem",
       {0.001f, 2, 3},
       {0, 2, 3},
       1,
       0.0010000000474974513,
       0.001000000047,
       8388.6083984375,
       2,
       2},
      {"f16bench0", {1, 2}, {0, 2}, 0.894427191, 1, 1, 8388608, 1, 1},
      {"big", {1e30f, 2}, {2e30f, 2}, 1, 1.0000000150474662e+30, 1.0000000150474662e+30, 0.5, 1, 1},
      {"den", {1e-42f, 2}, {2e-42f, 2}, 1, 9.991258050635946e-43, 0, 0.499649614096, 1, 1},
      {"overflowdiff",
       {3e38f, 1},
       {-3e38f, 1},
       -1,
       6.0000000109955115e+38,
       6.0000000109955115e+38,
       HUGE_VAL,
       1,
       1},
      {"thr1", {1.001f, 2, 3}, {1, 2, 3}, 1, 0.001000046730041504, 0.00100004673, 0.00100004673, 2, 3},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    for (const Isa isa : available_isas()) {
      const Difference d = compare(row.target, row.golden, isa);
      // The table's values are rounded: cosines to 6 or 12 decimals, errors to 12.
      CHECK(std::fabs(cosine(d) - row.cosine) <= (row.cosine > 0.9999 ? 5e-7 : 1e-12));
      CHECK(std::sqrt(d.squares_difference) == doctest::Approx(row.distance).epsilon(1e-14));
      CHECK((d.max_abs == row.max_abs || std::fabs(d.max_abs - row.max_abs) <= 1e-12));
      CHECK((d.max_relative == row.max_relative || std::fabs(d.max_relative - row.max_relative) <= 1e-12));
      CHECK(d.below_one_thousandth == row.below_1);
      CHECK(d.below_five_thousandths == row.below_5);
    }
  }
}

TEST_CASE("the reference values of the Python tool where one side is zero, and other types") {
  const Difference benchzero = compare<float>({1, 2, 3}, {0, 0, 0});
  CHECK(benchzero.max_relative == 25165824.0);
  CHECK(benchzero.squares_golden == 0);
  CHECK(std::sqrt(benchzero.squares_difference) == 3.7416573867739413);
  const Difference npuzero = compare<float>({0, 0, 0}, {1, 2, 3});
  CHECK(npuzero.max_relative == 1);
  CHECK(npuzero.squares_target == 0);
  CHECK(npuzero.below_five_thousandths == 0);
  const Difference zeros = compare<float>({0, 0, 0}, {0, -0.0f, 0});
  CHECK(zeros.max_relative == 0);
  CHECK(zeros.below_one_thousandth == 3);
  CHECK(zeros.unequal == 0);
  const Difference f64 = compare<double>({0.001, 2}, {0, 2});
  CHECK(f64.max_relative == 4503599627370.496);
  CHECK(f64.max_abs == 0.001);
  const Difference i32 = compare<double>({1, 2, 4}, {1, 2, 3});
  CHECK(i32.max_relative == 1.0 / 3);
  CHECK(std::fabs(cosine(i32) - 0.991460133984) < 1e-12);
  CHECK(compare<double>({1, 2}, {0, 2}).max_relative == 4503599627370496.0);
  CHECK(compare<std::int64_t>({1, 2}, {0, 2}).max_relative == 4503599627370496.0);
}

TEST_CASE_TEMPLATE("an error of exactly the threshold is not below it", T, float, double, std::int64_t,
                   std::uint64_t) {
  for (const Isa isa : available_isas()) {
    const Difference d = compare<T>({1001, 1005, 1000}, {1000, 1000, 1000}, isa);
    CHECK(d.below_one_thousandth == 1);
    CHECK(d.below_five_thousandths == 2);
  }
}

TEST_CASE_TEMPLATE("the smallest and the largest finite numbers are ordinary numbers", T, float, double) {
  using Limits = std::numeric_limits<T>;
  const std::vector<T> data = {Limits::min(), -Limits::min(), Limits::max(), Limits::lowest(),
                               Limits::min() / 2};
  for (const Isa isa : available_isas()) {
    const Difference d = compare<T>(data, {1, 1, Limits::max(), 1, 1}, isa);
    CHECK(d.target.denormal == 1);
    CHECK(d.target.zero == 0);
    CHECK(d.target.max == static_cast<double>(Limits::max()));
    CHECK(d.target.min == static_cast<double>(Limits::lowest()));
    CHECK(d.squares_golden > 4);  // had the pair of largest numbers been masked, it would be 4
    CHECK(d.max_abs == static_cast<double>(Limits::max()) + 1);
    CHECK(d.nonfinite_mismatch == 0);
  }
}

TEST_CASE("positions of NaN and infinity") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  const Difference d =
      compare<float>({nan, nan, nan, inf, inf, -inf, 1, inf, 5}, {nan, 1, inf, inf, -inf, -inf, nan, 2, 5});
  CHECK(d.nonfinite_mismatch == 4);  // nan/1, nan/inf, 1/nan, inf/2
  CHECK(d.infinity_sign_mismatch == 1);
  CHECK(d.unequal == 5);
  CHECK(d.first_unequal == 1);
  CHECK(d.dot == 25);  // all but the last pair count as 0, 0
  CHECK(d.max_abs == 0);
  CHECK(d.below_one_thousandth == 9);
  CHECK(d.target.nan == 3);
  CHECK(d.target.pos_inf == 3);
  CHECK(d.target.neg_inf == 1);
  CHECK(d.golden.max == static_cast<double>(inf));
  CHECK(std::isnan(d.target.sum));
}

TEST_CASE("64-bit integers are compared exactly") {
  const std::int64_t big = std::int64_t{1} << 53;
  const Difference near = compare<std::int64_t>({big + 1, 2}, {big, 2});
  CHECK(near.unequal == 1);
  CHECK(near.first_unequal == 0);
  CHECK(near.max_abs == 1);
  CHECK(near.max_relative == 0x1p-53);
  CHECK(near.squares_difference == 1);
  const Difference far = compare<std::int64_t>({INT64_MAX, INT64_MIN}, {INT64_MIN, INT64_MAX});
  CHECK(far.max_abs == 0x1p64);
  CHECK(far.max_relative == 2);
  CHECK(far.target.max == 0x1p63);
  CHECK(far.target.min == -0x1p63);
  const Difference top = compare<std::uint64_t>({UINT64_MAX}, {UINT64_MAX - 1});
  CHECK(top.max_abs == 1);
  CHECK(top.max_relative == 0x1p-64);
  CHECK(top.target.min == 0x1p64);
}

TEST_CASE("nothing, one element, and the index of a late difference") {
  const Difference nothing = DifferenceAccumulator().finish();
  CHECK(nothing.count == 0);
  CHECK(nothing.first_unequal == -1);
  CHECK(std::isnan(nothing.target.max));
  CHECK(std::isnan(nothing.golden.mean()));
  CHECK(same_bits(nothing, compare<double>({}, {})));
  CHECK(compare<double>({3}, {4}).dot == 12);
  std::vector<float> target(100003, 1.0f), golden(100003, 1.0f);
  target[70001] = 2;
  target[99999] = std::numeric_limits<float>::quiet_NaN();
  CHECK(compare(target, golden).first_unequal == 70001);
  CHECK(compare(target, golden).unequal == 2);
  target[70001] = 1;
  CHECK(compare(target, golden).first_unequal == 99999);
}

TEST_CASE("finish may be asked for more than once, and adding goes on") {
  const std::vector<float> some = {1, 2, 3}, more = {4, 5, 7};
  DifferenceAccumulator accumulator;
  accumulator.add(std::span<const float>(some), std::span<const float>(some));
  CHECK(accumulator.finish().dot == 14);
  CHECK(accumulator.finish().dot == 14);
  accumulator.add(std::span<const float>(more), std::span<const float>(some));
  CHECK(accumulator.finish().dot == 14 + 4 + 10 + 21);
  CHECK(accumulator.finish().first_unequal == 3);
}

TEST_CASE("misuse is refused") {
  const std::vector<float> two(2), three(3);
  const std::vector<double> wide(2);
  DifferenceAccumulator accumulator;
  CHECK_THROWS_AS(accumulator.add(std::span<const float>(two), std::span<const float>(three)),
                  std::logic_error);
  accumulator.add(std::span<const float>(two), std::span<const float>(two));
  CHECK_THROWS_AS(accumulator.add(std::span<const double>(wide), std::span<const double>(wide)),
                  std::logic_error);
}

TEST_CASE("instruction sets") {
  const std::vector<Isa> isas = available_isas();
  REQUIRE_FALSE(isas.empty());
  CHECK(isas.front() == Isa::scalar);
  CHECK(isas.back() == best_isa());
  for (const Isa isa : {Isa::scalar, Isa::sse2, Isa::avx2, Isa::avx512, Isa::neon}) {
    if (std::find(isas.begin(), isas.end(), isa) == isas.end()) {
      CHECK_THROWS_AS(DifferenceAccumulator{isa}, std::invalid_argument);
    } else {
      CHECK_NOTHROW(DifferenceAccumulator{isa});
    }
  }
}

}  // namespace msprobe::tensor::difference_test
