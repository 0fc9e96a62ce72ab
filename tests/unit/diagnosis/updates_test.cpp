// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/updates.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "support/byte_source.hpp"

namespace msprobe::diagnosis_updates_test {

using namespace msprobe;
using namespace msprobe::diagnosis;

namespace {

formats::StoredTensor stored(const std::vector<double>& values, std::vector<std::int64_t> shape) {
  const auto view = std::as_bytes(std::span(values));
  std::vector<std::byte> bytes(view.begin(), view.end());
  formats::StoredTensor tensor;
  tensor.dtype = tensor::DType::float64;
  tensor.shape = std::move(shape);
  tensor.strides = formats::row_major_strides(tensor.shape);
  tensor.storage = memory_source(std::move(bytes), "parameter");
  return tensor;
}

formats::StoredTensor row(const std::vector<double>& values) {
  return stored(values, {static_cast<std::int64_t>(values.size())});
}

}  // namespace

TEST_CASE("the step of a parameter beside that of golden") {
  // More elements than one piece has, so that pieces must go on from each other.
  const std::size_t n = 40'001;
  std::vector<double> before(n);
  std::vector<double> ours(n);
  std::vector<double> theirs(n);
  long double between = 0;
  long double dot = 0;
  long double squares = 0;
  for (std::size_t i = 0; i < n; ++i) {
    before[i] = std::sin(static_cast<double>(i));
    theirs[i] = before[i] + 0.01 * std::cos(static_cast<double>(3 * i));
    ours[i] = before[i] + 0.011 * std::cos(static_cast<double>(3 * i)) +
              1e-4 * std::sin(static_cast<double>(7 * i));
    const long double a = static_cast<long double>(ours[i]) - before[i];
    const long double b = static_cast<long double>(theirs[i]) - before[i];
    between += (a - b) * (a - b);
    dot += a * b;
    squares += b * b;
  }
  const auto update = update_between({row(before), row(ours)}, {row(before), row(theirs)});
  REQUIRE(update.has_value());
  CHECK(update->n == n);
  CHECK(update->gain == doctest::Approx(static_cast<double>(dot / squares)).epsilon(1e-12));
  CHECK(update->e == doctest::Approx(static_cast<double>(std::sqrt(between / squares))).epsilon(1e-12));
  CHECK(update->gain == doctest::Approx(1.1).epsilon(1e-3));
}

TEST_CASE("a step that golden did not make") {
  const auto update = update_between({row({1, 2}), row({1, 3})}, {row({1, 2}), row({1, 2})});
  REQUIRE(update.has_value());
  CHECK(update->gain == std::numeric_limits<double>::infinity());
  const auto none = update_between({row({1, 2}), row({1, 2})}, {row({1, 2}), row({1, 2})});
  REQUIRE(none.has_value());
  CHECK(none->gain == 1);
  CHECK(none->e == 0);
}

TEST_CASE("tensors that do not go together have no steps") {
  CHECK_FALSE(update_between({row({1, 2}), row({1, 2, 3})}, {row({1, 2}), row({1, 2})}));
  CHECK_FALSE(update_between({row({1, 2}), row({1, 3})}, {stored({1, 2}, {2, 1}), row({1, 2})}));
  CHECK_FALSE(update_between({row({}), row({})}, {row({}), row({})}));
}

TEST_CASE("the error without a common factor separates the factor from noise") {
  UpdateStatistics factor;
  UpdateStatistics noise;
  for (int i = 0; i < 5; ++i) {
    factor.add({.n = 48, .e = 0.1, .gain = 1.1});
    noise.add({.n = 48, .e = 0.1, .gain = 1.01});
  }
  CHECK(factor.deviation() == doctest::Approx(0.1 / 1e-3).epsilon(1e-6));
  CHECK(factor.median_gain() == doctest::Approx(1.1));
  CHECK(noise.deviation() ==
        doctest::Approx(0.01 / (1e-3 + 4 * std::sqrt(0.01 - 1e-4) / std::sqrt(48.0))).epsilon(1e-6));
}

TEST_CASE("a parameter stands out from those that have drifted") {
  constexpr double u = 0x1p-24;
  SUBCASE("all have") {
    const std::optional<Drift> drift = drift_of({1e-6, 2e-6, 3e-6, 4e-6}, u);
    REQUIRE(drift.has_value());
    CHECK(drift->small);
    CHECK(drift->differing == 4);
    CHECK(drift->largest == 4e-6);
    CHECK(drift->stands_out(2e-3, false, std::nullopt, u));
    CHECK_FALSE(drift->stands_out(5e-4, false, std::nullopt, u));
    CHECK_FALSE(drift->stands_out(0.3, true, 0.01, u));  // a vector that began as zeros
    CHECK(drift->stands_out(0.6, true, 0.01, u));
  }
  SUBCASE("a few have, so that a vector is one that others are not") {
    const std::optional<Drift> drift = drift_of({0, 0, 0, 0, 0, 3e-3}, u);
    REQUIRE(drift.has_value());
    CHECK(drift->median == 0);
    CHECK(drift->stands_out(3e-3, true, 0.01, u));
    CHECK_FALSE(drift->stands_out(3e-3, true, 0.9, u));  // its gradient is noise, and so was its update
    CHECK_FALSE(drift->stands_out(3e-3, true, std::nullopt, u));
    CHECK(drift->stands_out(3e-3, false, std::nullopt, u));
  }
  SUBCASE("so far that nothing does") {
    const std::optional<Drift> drift = drift_of({0.1, 0.2, 0.3}, u);
    REQUIRE(drift.has_value());
    CHECK_FALSE(drift->small);
    CHECK_FALSE(drift->stands_out(100, false, std::nullopt, u));
  }
  CHECK_FALSE(drift_of({0, 0, 0}, u).has_value());
}

TEST_CASE("one norm that moves proves nothing while a hundred times less would be hidden") {
  ParameterStep step;
  step.n = 1024;
  step.golden = 0;
  step.coarse = 3e-7;
  step.target = step.by_norm = 4e-3;
  CHECK_FALSE(step.rests_alone(0x1p-24));
  step.target = step.by_norm = 1e-2;
  CHECK(step.rests_alone(0x1p-24));
}

TEST_CASE("a mean that hardly moves proves no more than a norm") {
  // A parameter in bfloat16 that loses most of its updates, from which few elements move.
  const ParameterTrace before{{0.1767578125, -0.1767578125, 4.685763e-3, 3.3050952},
                              {0.1767578125, -0.1767578125, 4.686946e-3, 3.3051507}};
  const auto rests = [&](double target_mean, double target_norm, double rounding) {
    const ParameterTrace now{{0.1767578125, -0.1767578125, target_mean, target_norm},
                             {0.1767578125, -0.1767578125, 4.685793e-3, 3.3050759}};
    measuring::Tolerance tolerance;
    tolerance.norm = tolerance.mean_sum = rounding;
    return step_between(before, now, 1024, tolerance).rests_alone(0x1p-9);
  };
  CHECK_FALSE(rests(4.685577e-3, 3.3051014, 3e-6));
  CHECK(rests(4.685763e-3, 3.3050952, 1e-9));
}

}  // namespace msprobe::diagnosis_updates_test
