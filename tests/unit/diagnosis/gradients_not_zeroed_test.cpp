// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <string>

#include "diagnosis/finding.hpp"
#include "unit/diagnosis/rank_pairs.hpp"

namespace msprobe::diagnosis::gradients_not_zeroed_test {
namespace {

using testing::diagnosed;
using testing::first;
using testing::no_evidence;
using testing::Two;

constexpr std::size_t kLayers = 4;
using Means = std::array<double, kLayers>;

/// A gradient by its mean; the other statistics follow it a little.
std::string gradient(double mean) {
  const std::string one = python_repr(mean);
  return R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": "[64, 64]", "Max": )" +
         python_repr(0.3 + mean) + R"(, "Min": -0.25, "Mean": )" + one + R"(, "Norm": )" +
         python_repr(3.2 + mean) + "}";
}

/// The gradients of four layers in one step.
Two step(const Means& ours, const Means& theirs) {
  Two two;
  for (std::size_t i = 0; i < kLayers; ++i) {
    const std::string name = "Module.fc" + std::to_string(i) + ".Linear";
    const std::string in = testing::tensor(1);
    two.forward(name + ".forward.0", {in}, {in}, {in}, {in});
    two.backward(name + ".backward.0", {in}, {in}, {in}, {in});
    two.target.gradients(name + ".parameters_grad",
                         {testing::named("weight", "[" + gradient(ours[i]) + "]")});
    two.golden.gradients(name + ".parameters_grad",
                         {testing::named("weight", "[" + gradient(theirs[i]) + "]")});
  }
  return two;
}

constexpr Means kFirst = {0.011, -0.023, 0.0052, 0.034};
constexpr Means kSecond = {0.012, -0.021, 0.0061, 0.029};

Means sum(const Means& a, const Means& b) {
  Means out{};
  for (std::size_t i = 0; i < kLayers; ++i) out[i] = a[i] + b[i];
  return out;
}

RankDiagnosis second_step(const Means& ours, const Means& theirs) {
  History history;
  REQUIRE(no_evidence(diagnosed(step(kFirst, kFirst), history)));
  return diagnosed(step(ours, theirs), history);
}

}  // namespace

TEST_CASE("gradients that contain those of the step before were not zeroed") {
  SUBCASE("in the run under test") {
    const RankDiagnosis rank = second_step(sum(kFirst, kSecond), kSecond);
    CHECK(first(rank).kind == Kind::gradient);
    CHECK(first(rank).confidence == Confidence::certain);
    CHECK(first(rank).entry == "Module.fc0.Linear.parameters_grad");
    CHECK(first(rank).concerned == kLayers);
    CHECK(first(rank).side.starts_with("this run"));
    CHECK(first(rank).next.find("zero_grad") != std::string::npos);
    CHECK(rank.evidence == 1);  // one cause is said once
  }
  SUBCASE("in golden") {
    const RankDiagnosis rank = second_step(kSecond, sum(kFirst, kSecond));
    CHECK(first(rank).side.starts_with("golden"));
    CHECK(rank.evidence == 1);
  }
}

TEST_CASE("other gradients are no such case") {
  const auto blamed = [](const RankDiagnosis& rank) {
    return !rank.findings.empty() && rank.findings.front().next.find("zero_grad") != std::string::npos;
  };
  CHECK(no_evidence(second_step(kSecond, kSecond)));
  Means scaled = kSecond;
  for (double& mean : scaled) mean *= 2;
  CHECK_FALSE(blamed(second_step(scaled, kSecond)));
  Means half = sum(kFirst, kSecond);
  half[2] = kSecond[2] * 1.5;  // two of four are off otherwise
  half[3] = kSecond[3] * 1.5;
  CHECK_FALSE(blamed(second_step(half, kSecond)));
  History none;
  CHECK_FALSE(blamed(diagnosed(step(sum(kFirst, kSecond), kSecond), none)));
}

}  // namespace msprobe::diagnosis::gradients_not_zeroed_test
