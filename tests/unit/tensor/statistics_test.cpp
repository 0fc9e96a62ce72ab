// SPDX-License-Identifier: Apache-2.0
#include "tensor/statistics.hpp"

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <stdexcept>
#include <vector>

#include "tensor/difference.hpp"

namespace msprobe::tensor::statistics_test {
namespace {

template <typename T>
Statistics statistics(const std::vector<T>& data, Isa isa = best_isa(), std::size_t piece = 1000000) {
  StatisticsAccumulator accumulator(isa);
  const std::span<const T> all(data);
  for (std::size_t at = 0; at < all.size(); at += piece) {
    accumulator.add(all.subspan(at, std::min(piece, all.size() - at)));
  }
  return accumulator.finish();
}

bool same_bits(const Statistics& a, const Statistics& b) {
  const auto same = [](double x, double y) {
    return std::bit_cast<std::uint64_t>(x) == std::bit_cast<std::uint64_t>(y);
  };
  return a.count == b.count && a.nan == b.nan && a.pos_inf == b.pos_inf && a.neg_inf == b.neg_inf &&
         a.zero == b.zero && a.denormal == b.denormal && same(a.max, b.max) && same(a.min, b.min) &&
         same(a.sum, b.sum) && same(a.sum_of_squares, b.sum_of_squares);
}

}  // namespace

TEST_CASE("statistics of a small tensor") {
  const float inf = std::numeric_limits<float>::infinity();
  const Statistics s = statistics<float>({3, -4, 0, -0.0f, 1e-40f});
  CHECK(s.count == 5);
  CHECK(s.zero == 2);
  CHECK(s.denormal == 1);
  CHECK(s.max == 3);
  CHECK(s.min == -4);
  CHECK(s.norm() == 5);
  CHECK(s.mean() == doctest::Approx(-0.2));
  const Statistics bad = statistics<float>({1, inf, -inf, std::nanf(""), 2});
  CHECK(bad.nan == 1);
  CHECK(bad.pos_inf == 1);
  CHECK(bad.neg_inf == 1);
  CHECK(bad.max == static_cast<double>(inf));
  CHECK(std::isnan(bad.sum));
  const Statistics up = statistics<double>({1, HUGE_VAL});
  CHECK(up.sum == HUGE_VAL);
  CHECK(up.norm() == HUGE_VAL);
  CHECK(up.min == 1);
  const Statistics only_nan = statistics<double>({std::nan(""), std::nan("")});
  CHECK(std::isnan(only_nan.max));
  CHECK(only_nan.nan == 2);
}

TEST_CASE("an empty tensor has no extrema and no mean, and sums of 0") {
  for (const Statistics& s :
       {StatisticsAccumulator().finish(), statistics<float>({}), statistics<std::int64_t>({})}) {
    CHECK(s.count == 0);
    CHECK(std::isnan(s.max));
    CHECK(std::isnan(s.min));
    CHECK(std::isnan(s.mean()));
    CHECK(s.norm() == 0);
  }
}

TEST_CASE("integers of 64 bits") {
  const Statistics s = statistics<std::int64_t>({INT64_MIN, 0, 7});
  CHECK(s.min == -0x1p63);
  CHECK(s.max == 7);
  CHECK(s.zero == 1);
  CHECK(statistics<std::uint64_t>({UINT64_MAX}).max == 0x1p64);
}

TEST_CASE_TEMPLATE("the same bits as a comparison reports for either side, however cut", T, float, double,
                   std::int64_t, std::uint64_t) {
  std::mt19937_64 random(9);
  for (const std::size_t n : {0u, 1u, 15u, 16u, 17u, 1000u, 5003u}) {
    std::vector<T> target, golden;
    for (std::size_t i = 0; i < n; ++i) {
      target.push_back(static_cast<T>(static_cast<double>(random() % 100000) * 0.37));
      golden.push_back(static_cast<T>(static_cast<double>(random() % 100000) * 0.73));
    }
    // A bad element on the golden side only must not touch the target's numbers.
    if (n > 100 && std::numeric_limits<T>::has_infinity) golden[n / 2] = std::numeric_limits<T>::infinity();
    for (const Isa isa : available_isas()) {
      CAPTURE(isa_name(isa));
      CAPTURE(n);
      DifferenceAccumulator accumulator(isa);
      accumulator.add(std::span<const T>(target), std::span<const T>(golden));
      const Difference d = accumulator.finish();
      CHECK(same_bits(statistics(target, isa), d.target));
      CHECK(same_bits(statistics(golden, isa, 7), d.golden));
    }
  }
}

TEST_CASE("a second element type is refused") {
  const std::vector<float> floats(1);
  const std::vector<double> numbers(1);
  StatisticsAccumulator accumulator;
  accumulator.add(std::span<const float>(floats));
  CHECK_THROWS_AS(accumulator.add(std::span<const double>(numbers)), std::logic_error);
}

}  // namespace msprobe::tensor::statistics_test
