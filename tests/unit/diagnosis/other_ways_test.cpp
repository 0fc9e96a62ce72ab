// SPDX-License-Identifier: Apache-2.0
// Programs that were written in another way to the same result, and the mistakes beside them.
#include <doctest/doctest.h>

#include <string>

#include "unit/diagnosis/rank_pairs.hpp"

namespace msprobe::diagnosis::other_ways_test {
using testing::Asked;
using testing::Chain;
using testing::diagnosed;
using testing::first;
using testing::modules_of;
using testing::named;
using testing::no_evidence;
using testing::rough;
using testing::scalar;
using testing::tensor;
using testing::Two;

constexpr std::string_view kBfloat16 = "torch.bfloat16";

TEST_CASE("the weight of an operand is no epsilon") {
  const auto run = [](const std::string& added) {
    Two two;
    two.target.forward("Tensor.__add__.0.forward", {tensor(1), scalar("float", added)}, {tensor(2)});
    two.target.forward("Tensor.lerp_.0.forward", {tensor(2), tensor(3), scalar("float", "0.03")},
                       {tensor(4)});
    two.golden.forward("Torch.fused_norm.0.forward", {tensor(1)}, {tensor(2)});
    two.golden.forward("Functional.layer_norm.0.forward", {tensor(2), scalar("float", "1e-05")}, {tensor(4)});
    two.forward("Functional.silu.0.forward", {tensor(4)}, {tensor(3)}, {tensor(4)}, {tensor(3)});
    return diagnosed(two);
  };
  CHECK(no_evidence(run("1e-05")));
  CHECK(!no_evidence(run("0.01")));
}

TEST_CASE("a backward for each part of the loss, or one for their sum") {
  const auto run = [](double last, bool one_more) {
    Two two;
    const std::string weight = tensor(0.1, "[64, 64]");
    const auto linear = [&](testing::DumpText& side, double gradient) {
      side.forward("Functional.linear.0.forward", {tensor(1), weight}, {tensor(2)});
      side.forward("Module.body.Linear.forward.0", {tensor(1)}, {tensor(2)}, {}, {named("weight", weight)});
      side.backward("Functional.linear.0.backward", {tensor(gradient)}, {tensor(0.7 * gradient)});
    };
    const auto given = [](testing::DumpText& side, int pass, double gradient) {
      side.gradients("Module.body.Linear.parameters_grad." + std::to_string(pass),
                     {R"("weight": [)" + tensor(gradient, "[64, 64]") + "]"});
    };
    linear(two.target, one_more ? 0.2 : 0.5);
    if (one_more) given(two.target, 0, 0.3);
    given(two.target, one_more ? 1 : 0, last);
    linear(two.golden, 0.5);
    given(two.golden, 0, 0.8);
    return diagnosed(two);
  };
  CHECK(no_evidence(run(0.8, true)));
  CHECK(!no_evidence(run(0.9, true)));
  CHECK(!no_evidence(run(0.9, false)));
}

TEST_CASE("a critic is frozen while the actor learns, or lets its gradient pass through") {
  // After the critic's step, this run's weight takes no part in the loss of the actor.
  const auto run = [](double first, bool trained_by_it) {
    const auto weight = [](double size, bool grad) {
      return tensor(size, "[64, 64]", "torch.float32",
                    grad ? R"(, "requires_grad": true)" : R"(, "requires_grad": false)");
    };
    Two two;
    const auto step = [&](testing::DumpText& side, double gradient, bool second) {
      for (const int pass : {0, 1}) {
        const std::string call = std::to_string(pass);
        const double size = 1 + pass;
        const std::string used = weight(0.1 * size, pass == 0 || second);
        side.forward("Functional.linear." + call + ".forward", {tensor(size), used}, {tensor(3 * size)});
        side.forward("Module.critic.Linear.forward." + call, {tensor(size)}, {tensor(3 * size)}, {},
                     {named("weight", used)});
        side.backward("Functional.linear." + call + ".backward", {tensor(5)}, {tensor(6)});
        if (pass == 1 && !second) continue;
        side.gradients("Module.critic.Linear.parameters_grad." + call,
                       {R"("weight": [)" + tensor(gradient + pass, "[64, 64]") + "]"});
        if (pass == 0 || trained_by_it)
          side.forward("Tensor.add_." + call + ".forward",
                       {weight(0.1 * size, true), tensor(gradient + pass, "[64, 64]")},
                       {weight(0.1 * size + 0.1, true)});
      }
    };
    step(two.target, first, false);
    step(two.golden, 0.4, true);
    return diagnosed(
        two, {},
        modules_of({{"Tensor.add_.0.forward", "optimizer"}, {"Tensor.add_.1.forward", "optimizer"}}));
  };
  CHECK(no_evidence(run(0.4, false)));
  CHECK(first(run(0.5, false)).entry == "Module.critic.Linear.parameters_grad.0");
  CHECK(!no_evidence(run(0.4, true)));
}

TEST_CASE("a convolution as a product and a sum computes in a finer type") {
  const auto run = [](double size, double error, bool exchanged = false) {
    const auto half = [](double of, double apart = 0) { return rough(of, apart, "[4, 64]", kBfloat16); };
    Two two;
    for (int i = 0; i < 4; ++i)
      two.forward("Functional.relu." + std::to_string(i) + ".forward", {tensor(10 + i)}, {tensor(20 + i)},
                  {tensor(10 + i)}, {tensor(20 + i)});
    testing::DumpText& sums = exchanged ? two.golden : two.target;
    testing::DumpText& convolution = exchanged ? two.target : two.golden;
    sums.forward("Tensor.__mul__.0.forward", {half(1), tensor(0.3, "[1, 64]")}, {tensor(5, "[4, 9, 64]")});
    sums.forward("Tensor.sum.0.forward", {tensor(5, "[4, 9, 64]")}, {rough(size, error)});
    convolution.forward("Torch.conv1d.0.forward", {half(1), half(0.3)}, {half(2)});
    for (const double layer : {1.0, 0.7}) {
      const std::string name = layer == 1 ? "Functional.silu.0.forward" : "Functional.gelu.0.forward";
      sums.forward(name, {rough(size * layer, error)}, {rough(0.7 * size * layer, error)});
      convolution.forward(name, {half(2 * layer)}, {half(1.4 * layer)});
    }
    return diagnosed(two);
  };
  CHECK(no_evidence(run(2, 5e-3)));
  CHECK(!no_evidence(run(2, 0.1)));
  // Its norm shows what is small beside the rounding of single elements.
  CHECK(!no_evidence(run(2.02, 0)));
  // A coarser type loses what golden has.
  CHECK(!no_evidence(run(2, 5e-3, true)));
}

TEST_CASE("gradients of a batch in parts have the rounding of the type in which these are computed") {
  const auto run = [](double error) {
    const auto half = [](double size) { return tensor(size, "[2, 64]", kBfloat16); };
    const std::string weight = tensor(0.1, "[64, 64]");
    const std::string state = tensor(0.5, "[64, 64]");
    Two two;
    two.golden.forward("Functional.linear.0.forward", {tensor(1), weight}, {tensor(2, "[4, 64]", kBfloat16)});
    for (const int i : {0, 1})
      two.target.forward("Functional.linear." + std::to_string(i) + ".forward",
                         {tensor(1 + i, "[2, 64]"), weight}, {half(2 + i)});
    two.forward("Tensor.lerp_.0.forward", {state, rough(0.3, error, "[64, 64]")},
                {rough(0.8, error, "[64, 64]")}, {state, tensor(0.3, "[64, 64]")}, {tensor(0.8, "[64, 64]")});
    return diagnosed(two, {}, modules_of({{"Tensor.lerp_.0.forward", "optimizer"}}));
  };
  CHECK(no_evidence(run(2e-3)));
  CHECK(!no_evidence(run(0.2)));
}

TEST_CASE("classes that are cut off again") {
  const auto run = [](double cut) {
    const auto chosen = [](int classes, std::string_view dtype) {
      return R"({"type": "torch.Tensor", "dtype": ")" + std::string(dtype) + R"(", "shape": [4, )" +
             std::to_string(classes) + R"(], "Max": 1, "Min": 0, "Mean": 0.1, "Norm": 2.0})";
    };
    const std::string labels =
        R"({"type": "torch.Tensor", "dtype": "torch.int64", "shape": [4], "Max": 7, "Min": 1, "Mean": 3.25, "Norm": 9})";
    const std::string weight = tensor(0.2, "[64, 8]");
    Two two;
    two.forward("Functional.one_hot.0.forward", {labels, scalar("int", "9")}, {chosen(9, "torch.int64")},
                {labels, scalar("int", "8")}, {chosen(8, "torch.int64")});
    two.forward("Functional.linear.0.forward",
                {cut == 1 ? chosen(8, "torch.float32") : tensor(cut, "[4, 8]"), weight}, {tensor(cut)},
                {chosen(8, "torch.float32"), weight}, {tensor(1)});
    return diagnosed(two);
  };
  CHECK(no_evidence(run(1)));
  CHECK(!no_evidence(run(1.5)));
}

TEST_CASE("another way to a result is one in later steps, where errors have grown") {
  const auto step = [](History& history, double result) {
    Two two;
    for (int i = 0; i < 3; ++i) {
      const std::string out = tensor(2 + i);
      two.forward("Functional.linear." + std::to_string(i) + ".forward",
                  {tensor(1), tensor(0.1 + i, "[64, 64]")}, {out}, {tensor(1), tensor(0.1 + i, "[64, 64]")},
                  {out});
    }
    two.forward("Tensor.__mul__.0.forward", {tensor(2), tensor(3)}, {tensor(7)}, {tensor(3), tensor(4)},
                {tensor(13)});
    two.forward("Tensor.__mul__.1.forward", {tensor(7), tensor(4)}, {tensor(result)}, {tensor(2), tensor(13)},
                {tensor(50)});
    return diagnosed(two, history);
  };
  History history;
  history.noise = 0.02;
  CHECK(!no_evidence(step(history, 50)));
  for (const double result : {50.0, 60.0}) {
    History later;
    REQUIRE(no_evidence(step(later, 50)));
    later.noise = 0.02;
    CHECK(no_evidence(step(later, result)) == (result == 50));
  }
}

TEST_CASE("a sum that cancels leaves the roundings of what it adds") {
  // exp(d) - d - 1 in golden, expm1(d) - d in the target: the result is a hundredth of what is added.
  double error = 5e-6;
  SUBCASE("roundings") {}
  SUBCASE("more") {
    error = 1e-3;
  }
  Two two = Chain().text();
  two.target.forward("Torch.expm1.0.forward", {tensor(4)}, {tensor(0.11)});
  two.golden.forward("Tensor.exp.0.forward", {tensor(4)}, {tensor(1.1)});
  two.golden.forward("Tensor.__sub__.0.forward", {tensor(1.1), tensor(1)}, {tensor(0.01)});
  two.forward("Torch.sqrt.0.forward", {rough(0.01, error)}, {rough(0.1, error)}, {tensor(0.01)},
              {tensor(0.1)});
  CHECK(no_evidence(diagnosed(two)) == (error < 1e-4));
}

}  // namespace msprobe::diagnosis::other_ways_test
