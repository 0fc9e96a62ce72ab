// SPDX-License-Identifier: Apache-2.0
#include "monitor/parting/parting.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "monitor/parting/fluctuation.hpp"
#include "monitor/parting/moment.hpp"

namespace msprobe::monitor_parting_test {

using namespace msprobe::monitor;

namespace {

constexpr std::size_t kSteps = 600;

/// Numbers as a training has them: common to both runs but for a small share.
struct Runs {
  std::vector<double> a;
  std::vector<double> b;
};

/// `of(common, own)` makes the number of a step of noise that both runs have, and of a run's own.
template <typename Of>
Runs make_runs(unsigned seed, const Of& of) {
  std::mt19937 common(seed);
  std::mt19937 own(seed + 1000);
  std::normal_distribution<double> noise;
  Runs runs;
  for (std::size_t step = 0; step < kSteps; ++step) {
    const double shared = noise(common);
    noise.reset();
    runs.a.push_back(of(step, shared, noise(own)));
    runs.b.push_back(of(step, shared, noise(own)));
    noise.reset();
  }
  return runs;
}

Runs norms(unsigned seed) {
  return make_runs(seed, [](std::size_t step, double shared, double own) {
    // Rounding grows tenfold every 40 steps, and ends at two percent.
    const double apart = std::min(0.02, 1e-7 * std::pow(10.0, static_cast<double>(step) / 40));
    return 3 / std::sqrt(1 + static_cast<double>(step) / 60) * std::exp(0.2 * shared + apart * own);
  });
}

TEST_CASE("the scatter is the standard deviation of normal noise, and rare large numbers widen it") {
  std::mt19937 engine(7);
  std::normal_distribution<double> noise(5, 2);
  double sum = 0;
  for (int i = 0; i < 200; ++i) {
    std::vector<double> values(64);
    for (double& value : values) value = noise(engine);
    sum += scatter(values);
  }
  CHECK(sum / 200 == doctest::Approx(2).epsilon(0.25));
  std::vector<double> rare(64, 1.0);
  rare[10] = 101;
  CHECK(scatter(rare) == doctest::Approx(40));
  std::vector<double> constant(64, 3.0);
  CHECK(scatter(constant) == 0);
  std::vector<double> holes = {NAN, 1, INFINITY, 2, 3, NAN};
  CHECK(scatter(holes) > 0);
}

TEST_CASE("what is equal is identical, NaN and infinities included") {
  const std::vector<double> values = {1, NAN, 2, INFINITY, -INFINITY, 0};
  const Course course = judge(values, values, {});
  CHECK(course.verdict == PartingVerdict::identical);
  CHECK(course.unequal == 0);
  CHECK(course.not_finite == 3);
  CHECK(judge({}, {}, {}).verdict == PartingVerdict::identical);
}

TEST_CASE("healthy runs that rounding drives apart do not part") {
  for (unsigned seed = 0; seed < 40; ++seed) {
    const Runs runs = norms(seed);
    const Course course = judge(runs.a, runs.b, {});
    CHECK(course.verdict != PartingVerdict::parted);
    CHECK(course.unequal == kSteps);
    CHECK(course.largest_relative < 0.2);
  }
}

TEST_CASE("parameters that wander apart a little do not part") {
  double walk_a = 0;
  double walk_b = 0;
  std::mt19937 engine(3);
  std::normal_distribution<double> noise;
  std::vector<double> a;
  std::vector<double> b;
  for (std::size_t step = 0; step < kSteps; ++step) {
    const double shared = 1 + 0.2 * noise(engine);
    a.push_back(20 + 1e-3 * (walk_a += shared + 0.02 * noise(engine)));
    b.push_back(20 + 1e-3 * (walk_b += shared + 0.02 * noise(engine)));
  }
  CHECK(judge(a, b, {}).verdict == PartingVerdict::within);
}

TEST_CASE("a jump is found at its step, however small beside the size of the numbers") {
  Runs runs = make_runs(1, [](std::size_t step, double shared, double own) {
    return 50 + 1e-2 * static_cast<double>(step) + 1e-4 * shared + 1e-7 * own;
  });
  for (std::size_t step = 300; step < kSteps; ++step) runs.b[step] += 0.1;
  const Course course = judge(runs.a, runs.b, {});
  CHECK(course.verdict == PartingVerdict::parted);
  CHECK(course.parting == Parting::jump);
  CHECK(course.at == 300);
  CHECK(course.times > 100);
  CHECK(course.lasts);
}

TEST_CASE("what is over soon passes, and does not hide what comes later") {
  Runs runs = norms(5);
  runs.b[200] *= 30;
  runs.b[201] *= 30;
  Course course = judge(runs.a, runs.b, {});
  CHECK(course.verdict == PartingVerdict::passing);
  CHECK(course.at == 200);
  for (std::size_t step = 400; step < kSteps; ++step) runs.b[step] *= 30;
  course = judge(runs.a, runs.b, {});
  CHECK(course.verdict == PartingVerdict::parted);
  CHECK(course.at == 400);
}

TEST_CASE("a slow drift is found when it is farther than the numbers go by themselves") {
  Runs runs = norms(9);
  for (std::size_t step = 100; step < kSteps; ++step)
    runs.b[step] *= std::exp(0.02 * static_cast<double>(step - 100));
  const Course course = judge(runs.a, runs.b, {});
  CHECK(course.verdict == PartingVerdict::parted);
  CHECK(course.at > 120);
  CHECK(course.at < 300);
}

TEST_CASE("a number against none parts at once, also for a single step") {
  for (const double none : {NAN, INFINITY, -INFINITY}) {
    Runs runs = norms(2);
    runs.b[123] = none;
    for (const bool swapped : {false, true}) {
      const Course course = swapped ? judge(runs.b, runs.a, {}) : judge(runs.a, runs.b, {});
      CHECK(course.verdict == PartingVerdict::parted);
      CHECK(course.parting == Parting::number);
      CHECK(course.at == 123);
    }
  }
  const std::vector<double> plus = {1, INFINITY};
  const std::vector<double> minus = {1, -INFINITY};
  CHECK(judge(plus, minus, {}).parting == Parting::number);
}

TEST_CASE("a count of NaN parts where one side has none") {
  const std::vector<double> none(20, 0.0);
  std::vector<double> one = none;
  one[7] = 1;
  PartingRule rule;
  rule.counts_nans = true;
  CHECK(judge(none, one, rule).at == 7);
  CHECK(judge(none, one, rule).parting == Parting::number);
}

TEST_CASE("different from the first step on") {
  Runs runs = norms(4);
  for (double& value : runs.b) value *= 2.5;
  const Course course = judge(runs.a, runs.b, {});
  CHECK(course.verdict == PartingVerdict::parted);
  CHECK(course.parting == Parting::shift);
  CHECK(course.at == 0);
}

TEST_CASE("a shift that is small beside the common noise is found where the runs agreed before") {
  Runs runs = norms(8);
  for (std::size_t step = 100; step < kSteps; ++step) runs.b[step] *= 2;
  const Course course = judge(runs.a, runs.b, {});
  CHECK(course.verdict == PartingVerdict::parted);
  CHECK(course.parting == Parting::shift);
  CHECK(course.at == 100);
}

TEST_CASE("constant series part at the first real difference, not by rounding or by the digits of the file") {
  const std::vector<double> constant(50, 1.5);
  std::vector<double> other = constant;
  for (std::size_t i = 20; i < other.size(); ++i) other[i] = 1.5 * (1 + 5e-7);
  CHECK(judge(constant, other, {}).verdict == PartingVerdict::within);
  for (std::size_t i = 20; i < other.size(); ++i) other[i] = 1.6;
  CHECK(judge(constant, other, {}).at == 20);
  PartingRule half;
  half.rounding = 1.0 / 256;
  for (std::size_t i = 20; i < other.size(); ++i) other[i] = 1.51;
  CHECK(judge(constant, other, half).verdict == PartingVerdict::within);
  const std::vector<double> tiny(50, 3e-6);
  std::vector<double> digit = tiny;
  digit[30] = 4e-6;
  PartingRule written;
  written.resolution = 1e-6;
  CHECK(judge(tiny, digit, written).verdict == PartingVerdict::within);
}

TEST_CASE("at the end there are too few steps to see if it lasts") {
  Runs runs = norms(6);
  runs.b.back() *= 50;
  const Course course = judge(runs.a, runs.b, {});
  CHECK(course.verdict == PartingVerdict::parted);
  CHECK(course.at == kSteps - 1);
  CHECK_FALSE(course.lasts);
}

TEST_CASE("a single step each, and runs with a hole, are judged") {
  const std::vector<double> one = {2};
  const std::vector<double> other = {3};
  CHECK(judge(one, other, {}).verdict == PartingVerdict::parted);
  CHECK(judge(one, one, {}).verdict == PartingVerdict::identical);
  std::vector<double> a(100, NAN);
  std::vector<double> b(100, NAN);
  a[99] = b[99] = 1;
  CHECK(judge(a, b, {}).verdict == PartingVerdict::identical);
}

TEST_CASE("how finely numbers are written") {
  const std::vector<double> six = {0.123456, 1e-06, 3.0, NAN, 250.5};
  CHECK(resolution_of(six) == doctest::Approx(1e-6));
  const std::vector<double> tiny = {-8.7e-05, -8.6e-05};
  CHECK(resolution_of(tiny) == doctest::Approx(1e-6));
  const std::vector<double> whole = {1, 2, 1e9, 0};
  CHECK(resolution_of(whole) == 0);
  const std::vector<double> endless = {M_PI, 1.0 / 3};
  CHECK(resolution_of(endless) == 0);
  CHECK(resolution_of({}) == 0);
}

TEST_CASE("the order of a step: state, micro steps forward and backward, reduction, optimizer, parameters") {
  const auto moment = [](const char* quantity, std::optional<std::int64_t> micro_step,
                         std::size_t place = 0) {
    Track track;
    track.quantity = quantity;
    track.micro_step = micro_step;
    return moment_of(5, track, place, true);
  };
  const std::vector<Moment> order = {
      moment("param_origin", {}), moment("exp_avg", {}, 1),   moment("actv", 0, 0),
      moment("actv", 0, 1),       moment("actv_grad", 0),     moment("grad_unreduced", 0),
      moment("actv", 1),          moment("actv_grad", 1),     moment("grad_reduced", {}),
      moment("mg_direction", {}), moment("param_updated", {})};
  for (std::size_t i = 1; i < order.size(); ++i) CHECK(order[i - 1] <= order[i]);
  CHECK(moment("actv", 1) < moment("grad_unreduced", {}));
  Track moments;
  moments.quantity = "exp_avg";
  CHECK(moment_of(5, moments, 0, true) < moment("actv", 0));
  CHECK(moment("grad_reduced", {}) < moment_of(5, moments, 0, false));
}

}  // namespace
}  // namespace msprobe::monitor_parting_test
