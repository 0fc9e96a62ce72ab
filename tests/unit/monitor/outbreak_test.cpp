// SPDX-License-Identifier: Apache-2.0
#include "monitor/report/outbreak.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <vector>

#include "monitor/report/cells.hpp"

namespace msprobe::monitor_outbreak_test {

using namespace msprobe::monitor;

namespace {

std::vector<double> norms(unsigned seed, double width) {
  std::mt19937 engine(seed);
  std::normal_distribution<double> noise(0, width);
  std::vector<double> values;
  for (int step = 0; step < 500; ++step)
    values.push_back(4 / std::sqrt(1 + step / 50.0) * std::exp(noise(engine)));
  return values;
}

TEST_CASE("a healthy training does not blow up") {
  for (unsigned seed = 0; seed < 50; ++seed) CHECK_FALSE(find_outbreak(norms(seed, 0.3)));
  CHECK_FALSE(find_outbreak({}));
  const std::vector<double> never(10, NAN);
  CHECK_FALSE(find_outbreak(never));
  const std::vector<double> zeros(100, 0.0);
  CHECK_FALSE(find_outbreak(zeros));
}

TEST_CASE("the first NaN, and growth that stays") {
  std::vector<double> values = norms(1, 0.1);
  values[444] = NAN;
  auto found = find_outbreak(values);
  REQUIRE(found);
  CHECK(found->kind == Outbreak::OutbreakKind::number);
  CHECK(found->at == 444);
  for (std::size_t step = 300; step < 444; ++step) values[step] *= 9;
  found = find_outbreak(values);
  REQUIRE(found);
  CHECK(found->kind == Outbreak::OutbreakKind::growth);
  CHECK(found->at == 300);
  CHECK(found->value / found->usual == doctest::Approx(9).epsilon(0.5));
}

TEST_CASE("what creeps away is growth, from where it leaves all that was before") {
  std::mt19937 engine(4);
  std::normal_distribution<double> noise(0, 0.05);
  const auto creeping = [&](double each_step, double most) {
    std::vector<double> values;
    for (int step = 0; step < 10'000; ++step) {
      const double grown = step < 7000 ? 1 : std::min(most, std::pow(each_step, step - 7000));
      values.push_back(3 * grown * std::exp(noise(engine)));
    }
    return values;
  };
  for (const double each_step : {1.002, 1.005, 1.02}) {
    CAPTURE(each_step);
    const auto found = find_outbreak(creeping(each_step, 50));
    REQUIRE(found);
    CHECK(found->kind == Outbreak::OutbreakKind::growth);
    // Twice as much, give or take the noise.
    const double at = static_cast<double>(found->at) - 7000;
    CHECK(std::pow(each_step, at) > 1.5);
    CHECK(std::pow(each_step, at) < 3);
    CHECK(found->usual == doctest::Approx(each_step > 1.01 ? 3.6 : 3).epsilon(0.2));
  }
  CHECK_FALSE(find_outbreak(creeping(1.002, 1.8)));
  // A parameter that begins near 0, and a learning rate that warms up.
  std::vector<double> parameter;
  std::vector<double> update;
  for (int step = 1; step <= 10'000; ++step) {
    parameter.push_back(1e-3 * std::sqrt(step));
    update.push_back(1e-6 * std::min(step, 2000));
  }
  CHECK_FALSE(find_outbreak(std::span(parameter).subspan(20)));
  CHECK_FALSE(find_outbreak(std::span(update).subspan(20)));
}

TEST_CASE("a single large step is no outbreak, and does not hide one") {
  std::vector<double> values = norms(2, 0.1);
  values[200] *= 1000;
  CHECK_FALSE(find_outbreak(values));
  for (std::size_t step = 400; step < values.size(); ++step) values[step] = INFINITY;
  REQUIRE(find_outbreak(values));
  CHECK(find_outbreak(values)->at == 400);
}

double value_of(const CellScale& scale, std::uint16_t code) {
  return scale.unit * std::sinh(scale.from + (code - CellScale::kFirstNumber) * scale.quantum);
}

TEST_CASE("codes of cells are finer than the fluctuation, over any range") {
  for (const double factor : {1e-30, 1.0, 1e30}) {
    for (const bool blown : {false, true}) {
      std::vector<double> values = norms(3, 0.05);
      for (double& value : values) value *= factor;
      if (blown) {
        for (std::size_t step = 450; step < values.size(); ++step)
          values[step] *= std::pow(10.0, static_cast<double>(step - 449) / 5);
      }
      const CellScale scale = scale_of(values, {});
      for (const double value : values) {
        CHECK(value_of(scale, cell_code(scale, value)) == doctest::Approx(value).epsilon(0.004));
      }
    }
  }
}

TEST_CASE("NaN and infinities have separate codes, and steady rows keep their value") {
  const std::vector<double> values = {2.5, NAN, 2.5, INFINITY, 2.5, -INFINITY};
  const CellScale scale = scale_of(values, {});
  CHECK(value_of(scale, cell_code(scale, 2.5)) == doctest::Approx(2.5));
  CHECK(cell_code(scale, NAN) == CellScale::kNan);
  CHECK(cell_code(scale, INFINITY) == CellScale::kInfinity);
  CHECK(cell_code(scale, -INFINITY) == CellScale::kMinusInfinity);
  const std::vector<double> signs = {-1e-3, 0, 1e3, -5};
  const CellScale wide = scale_of(signs, {});
  CHECK(std::fabs(value_of(wide, cell_code(wide, 0))) < 1e-4);
  CHECK(value_of(wide, cell_code(wide, 1e3)) == doctest::Approx(1e3).epsilon(0.01));
  CHECK(value_of(wide, cell_code(wide, -5)) == doctest::Approx(-5).epsilon(0.01));
  CHECK(value_of(scale_of({}, {}), CellScale::kFirstNumber) == 0);
}

}  // namespace
}  // namespace msprobe::monitor_outbreak_test
