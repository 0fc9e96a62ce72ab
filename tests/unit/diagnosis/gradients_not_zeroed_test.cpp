// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

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
std::string gradient(double mean, std::string_view dtype) {
  const std::string one = python_repr(mean);
  return R"({"type": "torch.Tensor", "dtype": ")" + std::string(dtype) + R"(", "shape": [64, 64], "Max": )" +
         python_repr(0.3 + mean) + R"(, "Min": -0.25, "Mean": )" + one + R"(, "Norm": )" +
         python_repr(3.2 + mean) + "}";
}

void add_gradients(Two& two, const std::string& module, double ours, double theirs,
                   std::string_view dtype = "torch.float32") {
  const auto member = [&](double mean) {
    return testing::named("weight", "[" + gradient(mean, dtype) + "]");
  };
  two.target.gradients(module + ".parameters_grad", {member(ours)});
  two.golden.gradients(module + ".parameters_grad", {member(theirs)});
}

/// The gradients of four layers in one step.
Two step(const Means& ours, const Means& theirs, std::string_view dtype = "torch.float32") {
  Two two;
  for (std::size_t i = 0; i < kLayers; ++i) {
    const std::string name = "Module.fc" + std::to_string(i) + ".Linear";
    const std::string in = testing::tensor(1);
    two.forward(name + ".forward.0", {in}, {in}, {in}, {in});
    two.backward(name + ".backward.0", {in}, {in}, {in}, {in});
    add_gradients(two, name, ours[i], theirs[i], dtype);
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

/// The gradients of four layers after two passes of a step. Those of the first pass come before the backward
/// of their module, as where its input needs no gradient.
Two passes(const Means& first, const Means& ours, const Means& theirs) {
  Two two;
  const std::string in = testing::tensor(1);
  for (const std::string pass : {"0", "1"}) {
    for (std::size_t i = 0; i < kLayers; ++i) {
      const std::string name = "Module.fc" + std::to_string(i) + ".Linear";
      two.forward(name + ".forward." + pass, {in}, {in}, {in}, {in});
    }
    for (std::size_t i = 0; i < kLayers; ++i) {
      const std::string name = "Module.fc" + std::to_string(i) + ".Linear";
      const auto member = [&](double mean) {
        return testing::named("weight", "[" + gradient(mean, "torch.float32") + "]");
      };
      two.target.gradients(name + ".parameters_grad." + pass, {member(pass == "0" ? first[i] : ours[i])});
      two.golden.gradients(name + ".parameters_grad." + pass, {member(pass == "0" ? first[i] : theirs[i])});
      two.backward(name + ".backward." + pass, {in}, {in}, {in}, {in});
    }
  }
  return two;
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

TEST_CASE("gradients that do not accumulate over the passes of a step") {
  for (const bool exchanged : {false, true}) {
    CAPTURE(exchanged);
    const Means both = sum(kFirst, kSecond);
    const RankDiagnosis rank =
        diagnosed(exchanged ? passes(kFirst, both, kSecond) : passes(kFirst, kSecond, both));
    CHECK(first(rank).kind == Kind::gradient);
    CHECK(first(rank).entry == "Module.fc0.Linear.parameters_grad.1");
    CHECK(first(rank).text.find(exchanged
                                    ? "of the step in this run, in golden they do not"
                                    : "of the step in golden, in this run they do not") != std::string::npos);
    CHECK(first(rank).text.find("agrees after the pass before") == std::string::npos);
    CHECK(first(rank).side.starts_with(exchanged ? "golden zeroes or replaces"
                                                 : "this run zeroes or replaces"));
    CHECK(first(rank).next.find("zero_grad") != std::string::npos);
    CHECK(rank.evidence == 1);
  }
  CHECK(no_evidence(diagnosed(passes(kFirst, kSecond, kSecond))));
}

TEST_CASE("the last pass of the step before counts") {
  const Means both = sum(kFirst, kSecond);
  History history;
  REQUIRE(no_evidence(diagnosed(passes(kFirst, both, both), history)));
  Two two = passes(kFirst, both, both);
  const Two late = passes(sum(kFirst, both), sum(both, both), both);
  two.target = late.target;
  const RankDiagnosis rank = diagnosed(two, history);
  CHECK(first(rank).entry == "Module.fc0.Linear.parameters_grad.0");
  CHECK(first(rank).text.starts_with(
      "the gradients of 4 parameters in this run include those of the previous step"));
  CHECK(first(rank).concerned == kLayers);
  CHECK(rank.evidence == 1);
}

TEST_CASE("what the optimizer took is what remains of the step before") {
  // Half of each gradient, as clipping leaves it, and the mean of two ranks' gradients.
  const auto taken = [](std::string_view norms) {
    std::string names;
    for (std::size_t i = 0; i < kLayers; ++i)
      names += (i > 0 ? ", \"fc" : "\"fc") + std::to_string(i) + ".weight\"";
    return R"({"optimizers": [{"class": "Adam", "groups": [{"settings": {}, "parameters": [)" + names +
           R"(], "gradient_norms": [)" + std::string(norms) + "]}]}]}";
  };
  Two before = step(kFirst, kFirst);
  Means left = kFirst;
  SUBCASE("by its norm") {
    std::string norms;
    for (std::size_t i = 0; i < kLayers; ++i) {
      norms += (i > 0 ? ", " : "") + python_repr((3.2 + kFirst[i]) / 2);
      left[i] = kFirst[i] / 2;
    }
    before.target.training = before.golden.training = taken(norms);
  }
  SUBCASE("by its tensor") {
    std::string norms;
    for (std::size_t i = 0; i < kLayers; ++i) {
      left[i] = kSecond[i] * 0.7 + kFirst[i] / 9;
      norms += (i > 0 ? ", " : "") + python_repr(3.2 + left[i]);
      const std::string name = "Tensor.lerp_." + std::to_string(i) + ".forward";
      const std::string gradient_taken = gradient(left[i], "torch.float32");
      before.forward(name, {gradient_taken}, {gradient_taken}, {gradient_taken}, {gradient_taken});
    }
    before.target.training = before.golden.training = taken(norms);
  }
  History history;
  REQUIRE(no_evidence(diagnosed(before, history)));
  const RankDiagnosis rank = diagnosed(step(sum(left, kSecond), kSecond), history);
  CHECK(first(rank).kind == Kind::gradient);
  CHECK(first(rank).concerned == kLayers);
  CHECK(first(rank).next.find("zero_grad") != std::string::npos);
  CHECK(rank.evidence == 1);
}

TEST_CASE("means that are rounded make it likely") {
  // In bfloat16; three of the four means are large enough beside what they are off by.
  const auto quarter = [](Means means) {
    for (double& mean : means) mean /= 4;
    return means;
  };
  History history;
  REQUIRE(no_evidence(diagnosed(step(quarter(kFirst), quarter(kFirst), "torch.bfloat16"), history)));
  const RankDiagnosis rank =
      diagnosed(step(quarter(sum(kFirst, kSecond)), quarter(kSecond), "torch.bfloat16"), history);
  CHECK(first(rank).confidence == Confidence::likely);
  CHECK(first(rank).concerned == 3);
  CHECK(first(rank).next.find("zero_grad") != std::string::npos);
}

TEST_CASE("it is reported at the gradient that was there first") {
  // Releases before 26 of the Python tool write gradients where the forward stands.
  const auto early = [](const Means& ours, const Means& theirs) {
    Two two;
    const auto module = [](std::size_t i) { return "Module.fc" + std::to_string(i) + ".Linear"; };
    const std::string in = testing::tensor(1);
    for (std::size_t i = 0; i < kLayers; ++i) {
      two.forward(module(i) + ".forward.0", {in}, {in}, {in}, {in});
      add_gradients(two, module(i), ours[i], theirs[i]);
    }
    for (std::size_t i = kLayers; i-- > 0;) two.backward(module(i) + ".backward.0", {in}, {in}, {in}, {in});
    return two;
  };
  History history;
  REQUIRE(no_evidence(diagnosed(early(kFirst, kFirst), history)));
  const RankDiagnosis rank = diagnosed(early(sum(kFirst, kSecond), kSecond), history);
  CHECK(first(rank).entry == "Module.fc3.Linear.parameters_grad");
  CHECK(rank.evidence == 1);
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
  // With one batch for all steps a doubled gradient contains that of the step before, too.
  CHECK_FALSE(blamed(second_step(sum(kFirst, kFirst), kFirst)));
  History none;
  CHECK_FALSE(blamed(diagnosed(step(sum(kFirst, kSecond), kSecond), none)));
}

}  // namespace msprobe::diagnosis::gradients_not_zeroed_test
