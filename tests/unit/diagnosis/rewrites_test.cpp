// SPDX-License-Identifier: Apache-2.0
// The same value by other operations, batches in other parts, fused operators against composed ones.
#include "diagnosis/rewrites.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "unit/diagnosis/rank_pairs.hpp"

namespace msprobe::diagnosis::rewrites_test {
using testing::count;
using testing::diagnosed;
using testing::first;
using testing::is_one_cause;
using testing::modules_of;
using testing::named;
using testing::no_evidence;
using testing::rough;
using testing::scalar;
using testing::tensor;
using testing::Texts;
using testing::Two;

bool is_noted(const RankDiagnosis& rank, std::string_view text) {
  return std::any_of(rank.notes.begin(), rank.notes.end(),
                     [&](const std::string& note) { return note.find(text) != std::string::npos; });
}

/// Three tensors of one shape, from linear layers.
Two three_inputs() {
  Two two;
  for (int i = 0; i < 3; ++i) {
    const std::string out = tensor(2 + i);
    two.forward("Functional.linear." + std::to_string(i) + ".forward",
                {tensor(1), tensor(0.1 + i, "[64, 64]")}, {out}, {tensor(1), tensor(0.1 + i, "[64, 64]")},
                {out});
  }
  return two;
}

TEST_CASE("products in another order have one result") {
  Two two = three_inputs();
  double result = 50;
  SUBCASE("the same") {}
  SUBCASE("another") {
    result = 60;
  }
  // (x * y) * z, in golden x * (y * z).
  two.forward("Tensor.__mul__.0.forward", {tensor(2), tensor(3)}, {tensor(7)}, {tensor(3), tensor(4)},
              {tensor(13)});
  two.forward("Tensor.__mul__.1.forward", {tensor(7), tensor(4)}, {rough(result, 1e-7)},
              {tensor(2), tensor(13)}, {tensor(50)});
  two.backward("Tensor.__mul__.1.backward", {tensor(1)}, {tensor(0.7), tensor(0.4)}, {tensor(1)},
               {tensor(0.1), tensor(0.3)});
  const RankDiagnosis rank = diagnosed(two);
  if (result == 50) {
    CHECK(no_evidence(rank));
    CHECK(is_noted(rank, "values that differ, in another way: not compared"));
    CHECK(count(rank, Origin::not_compared) > 0);
    CHECK(count(rank, Origin::unexplained) == 0);
  } else {
    CHECK(first(rank).confidence == Confidence::certain);
    CHECK(!is_noted(rank, "lead to a result"));
  }
}

TEST_CASE("another way to add up has other roundings, whatever its arguments are") {
  const auto run = [](double error) {
    Two two = three_inputs();
    two.target.forward("Tensor.__sub__.0.forward", {tensor(3), tensor(2)}, {tensor(1.5)});
    two.target.forward("Tensor.__mul__.0.forward", {tensor(1.5), scalar("float", "0.01")}, {tensor(0.015)});
    two.golden.forward("Tensor.mul_.0.forward", {tensor(2), scalar("float", "0.99")}, {tensor(1.98)});
    two.target.forward("Tensor.add_.0.forward", {tensor(2), tensor(0.015)}, {rough(2.01, error)});
    two.golden.forward("Tensor.add_.0.forward", {tensor(1.98), tensor(3)}, {tensor(2.01)},
                       {named("alpha", scalar("float", "0.01"))});
    return diagnosed(two);
  };
  CHECK(no_evidence(run(1.2e-7)));
  CHECK(!no_evidence(run(1e-3)));
}

TEST_CASE("a product in two parts that are joined") {
  const auto run = [](double second) {
    Two two;
    const std::string in = tensor(1);
    two.target.forward("Functional.linear.0.forward", {in, tensor(0.3, "[16, 64]")}, {tensor(2, "[4, 16]")});
    two.target.forward("Functional.linear.1.forward", {in, tensor(0.4, "[48, 64]")},
                       {tensor(second, "[4, 48]")});
    two.target.forward("Torch.cat.0.forward", {tensor(2, "[4, 16]"), tensor(second, "[4, 48]")},
                       {tensor(second == 3 ? 2.5 : 4)});
    two.golden.forward("Functional.linear.0.forward", {in, tensor(0.5, "[64, 64]")}, {tensor(2.5)});
    two.forward("Functional.silu.0.forward", {tensor(second == 3 ? 2.5 : 4)}, {tensor(second == 3 ? 1.5 : 3)},
                {tensor(2.5)}, {tensor(1.5)});
    return diagnosed(two);
  };
  CHECK(no_evidence(run(3)));
  CHECK(!no_evidence(run(5)));
}

TEST_CASE("an optimizer written by hand is another implementation of one that is recorded as such") {
  const auto run = [](double step) {
    Two two;
    const std::string gradient = tensor(1, "[64, 64]");
    two.backward("Functional.linear.0.backward", {tensor(1)}, {gradient}, {tensor(1)}, {gradient});
    two.target.forward("Tensor.__rmul__.0.forward", {gradient, scalar("float", "0.1")},
                       {tensor(0.1, "[64, 64]")});
    two.target.forward("Tensor.__truediv__.0.forward", {gradient, scalar("float", "0.25")},
                       {tensor(4, "[64, 64]")});
    two.target.forward("Tensor.__isub__.0.forward", {tensor(3, "[64, 64]"), tensor(4, "[64, 64]")},
                       {tensor(step, "[64, 64]")});
    two.golden.forward("Tensor.lerp_.0.forward", {gradient, gradient}, {tensor(0.1, "[64, 64]")});
    two.golden.forward("Tensor.__truediv__.7.forward", {tensor(7, "[64, 64]"), scalar("float", "0.03")},
                       {tensor(9, "[64, 64]")});
    two.golden.forward("Tensor.addcdiv_.0.forward", {tensor(3, "[64, 64]"), tensor(9, "[64, 64]")},
                       {tensor(2, "[64, 64]")});
    // The average of weights.
    two.forward("Tensor.add_.0.forward", {tensor(5, "[64, 64]"), tensor(step, "[64, 64]")},
                {tensor(step == 2 ? 6 : 7, "[64, 64]")}, {tensor(5, "[64, 64]"), tensor(2, "[64, 64]")},
                {tensor(6, "[64, 64]")});
    const auto modules = modules_of({{"Tensor.lerp_.0.forward", "optimizer"},
                                     {"Tensor.__truediv__.7.forward", "optimizer"},
                                     {"Tensor.addcdiv_.0.forward", "optimizer"}});
    return diagnosed(
        two, [&](testing::Asked& asked) { asked.rank.golden_construct = modules; }, modules);
  };
  CHECK(no_evidence(run(2)));
  CHECK(!no_evidence(run(2.5)));
}

TEST_CASE("a sum that is divided later is a mean") {
  Two two;
  const std::string one = tensor(0.1, "[]");
  two.target.forward("Functional.cross_entropy.0.forward", {tensor(1), tensor(2, "[4]", "torch.int64")},
                     {tensor(9.6, "[]")}, {named("reduction", scalar("str", "\"sum\""))});
  two.golden.forward("Functional.cross_entropy.0.forward", {tensor(1), tensor(2, "[4]", "torch.int64")},
                     {tensor(0.1, "[]")});
  double number = 0.1;
  SUBCASE("by their number") {}
  SUBCASE("by another one") {
    number = 0.2;
  }
  two.target.forward("Tensor.__truediv__.0.forward", {tensor(9.6, "[]"), scalar("int", "96")},
                     {tensor(number, "[]")});
  const RankDiagnosis rank = diagnosed(two);
  CHECK(no_evidence(rank) == (number == 0.1));
  if (number != 0.1) CHECK(first(rank).kind == Kind::argument);
}

TEST_CASE("other operations of half types have their roundings, for any call that takes their output") {
  const auto run = [](double error) {
    Two two;
    const std::string weight = tensor(0.1, "[64, 64]", "torch.bfloat16");
    const std::string in = tensor(1, "[4, 64]", "torch.bfloat16");
    two.target.forward("Torch.mm.0.forward", {in, weight}, {rough(2, error, "[4, 64]", "torch.bfloat16")});
    two.golden.forward("Functional.linear.0.forward", {in, weight}, {tensor(2, "[4, 64]", "torch.bfloat16")});
    // Unrecorded code casts it.
    two.forward("Functional.cross_entropy.0.forward", {rough(2, error)}, {tensor(3, "[]")}, {tensor(2)},
                {tensor(3, "[]")});
    return diagnosed(two);
  };
  CHECK(no_evidence(run(6e-3)));
  CHECK(first(run(0.2)).kind == Kind::exchanged);
}

TEST_CASE("zeros are no result that two ways have in common") {
  const std::string zero =
      R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4, 64], "Max": 0.0, "Min": 0.0, "Mean": 0.0, "Norm": 0.0})";
  Two two;
  two.forward("Functional.relu.0.forward", {tensor(1)}, {tensor(2)}, {tensor(1)}, {tensor(2)});
  two.target.forward("Tensor.sqrt.0.forward", {zero}, {zero});
  two.golden.forward("Tensor.__pow__.0.forward", {tensor(2)}, {tensor(4)});
  two.forward("Tensor.__truediv__.0.forward", {zero, tensor(2)}, {zero}, {zero, tensor(4)}, {zero});
  const Finding found = first(diagnosed(two));
  CHECK(found.is_evidence());
  CHECK(found.text.find("Tensor.sqrt") != std::string::npos);
}

TEST_CASE("an error that fades is no rewrite") {
  // The sum is so much larger than what is wrong that its norm hardly shows it.
  Two two = three_inputs();
  two.forward("Functional.gelu.0.forward", {tensor(2), scalar("str", "\"tanh\"")}, {tensor(0.022)},
              {tensor(2), scalar("str", "\"none\"")}, {tensor(0.02)});
  two.forward("Tensor.__add__.0.forward", {tensor(400), tensor(0.022)}, {tensor(400)},
              {tensor(400), tensor(0.02)}, {tensor(400)});
  CHECK(first(diagnosed(two)).kind == Kind::argument);
  CHECK(first(diagnosed(two)).confidence == Confidence::certain);
}

TEST_CASE("a gradient that arrives wrong is the fault of the call that one side alone makes behind") {
  // A loss that is not divided by the number of accumulated batches.
  Two two = three_inputs();
  two.forward("Functional.mse_loss.0.forward", {tensor(2), tensor(3)}, {rough(8, 1e-7, "[2]")},
              {tensor(2), tensor(3)}, {tensor(8, "[2]")});
  two.golden.forward("Tensor.__truediv__.0.forward", {tensor(8, "[2]"), scalar("int", "2")},
                     {tensor(4, "[2]")});
  two.backward("Functional.mse_loss.0.backward", {tensor(1, "[2]")}, {tensor(6)}, {tensor(0.5, "[2]")},
               {tensor(3)});
  const RankDiagnosis rank = diagnosed(two);
  CHECK(first(rank).entry == "Tensor.__truediv__.0.forward");
  CHECK(first(rank).kind == Kind::removed);
  CHECK(first(rank).text.find("at Functional.mse_loss.0.backward") != std::string::npos);
  CHECK(is_one_cause(rank));
}

TEST_CASE("what puts nothing out makes nothing good") {
  Two two = three_inputs();
  two.forward("Tensor.copy_.0.forward", {tensor(2), tensor(4)}, {}, {tensor(2), tensor(3)}, {});
  two.forward("Functional.linear.3.forward", {tensor(2), tensor(0.1, "[64, 64]")}, {tensor(6)},
              {tensor(2), tensor(0.1, "[64, 64]")}, {tensor(5)});
  CHECK(!no_evidence(diagnosed(two)));
  CHECK(!is_noted(diagnosed(two), "lead to a result"));
}

TEST_CASE("a wrong parameter stays one, whatever comes behind") {
  Two two;
  two.forward("Functional.linear.0.forward", {tensor(1), tensor(0.3, "[64, 64]")}, {tensor(6)},
              {tensor(1), tensor(0.1, "[64, 64]")}, {tensor(2)});
  two.forward("Tensor.__mul__.0.forward", {tensor(6), scalar("float", "0.5")}, {tensor(1)},
              {tensor(2), scalar("float", "0.5")}, {tensor(1)});
  CHECK(first(diagnosed(two)).kind == Kind::parameter);
}

TEST_CASE("a batch in two parts") {
  const auto half = [](double size) { return tensor(size, "[2, 64]"); };
  const std::string weight = tensor(0.1, "[64, 64]");
  Two two;
  two.golden.forward("Functional.linear.0.forward", {tensor(1), weight}, {tensor(2)});
  double gradient = 0.3;
  SUBCASE("that mean the same") {}
  SUBCASE("whose gradients are not divided") {
    gradient = 0.6;
  }
  for (const int i : {0, 1})
    two.target.forward("Functional.linear." + std::to_string(i) + ".forward", {half(1 + i), weight},
                       {half(2 + i)});
  two.forward("Tensor.add_.0.forward", {tensor(0.5, "[64, 64]"), tensor(gradient, "[64, 64]")},
              {tensor(0.5 + gradient, "[64, 64]")}, {tensor(0.5, "[64, 64]"), tensor(0.3, "[64, 64]")},
              {tensor(0.8, "[64, 64]")});
  const RankDiagnosis rank = diagnosed(two, {}, modules_of({{"Tensor.add_.0.forward", "optimizer"}}));
  CHECK(is_noted(rank, "computed in 2 parts in this run, in 1 in golden"));
  CHECK(no_evidence(rank) == (gradient == 0.3));
  if (gradient != 0.3) CHECK(first(rank).entry == "Tensor.add_.0.forward");
}

TEST_CASE("heads that are computed one by one are no parts of a batch") {
  Two two;
  const auto module = [&](int number, const std::string& out) {
    two.forward("Module.m" + std::to_string(number) + ".Linear.forward.0", {tensor(1)}, {out}, {tensor(1)},
                {out});
  };
  for (int i = 0; i < 3; ++i) module(i, tensor(2 + i));
  for (int i = 0; i < 4; ++i)
    two.target.forward("Functional.attention." + std::to_string(i) + ".forward", {tensor(5, "[1, 64]")},
                       {tensor(6 + i, "[1, 64]")});
  two.golden.forward("Functional.attention.0.forward", {tensor(7)}, {tensor(8)});
  CHECK_FALSE(is_noted(diagnosed(two), "a step's batch is computed in"));
}

TEST_CASE("gradients that are nothing but noise") {
  // As of a key's bias in attention: beside those of other parameters they are nothing.
  Two two;
  double size = 1e-8;
  SUBCASE("beside larger ones") {}
  SUBCASE("of the size of others") {
    size = 0.5;
  }
  two.forward("Tensor.lerp_.0.forward", {tensor(1, "[64]"), tensor(1, "[64]")}, {tensor(2, "[64]")},
              {tensor(1, "[64]"), tensor(1, "[64]")}, {tensor(2, "[64]")});
  two.forward("Tensor.lerp_.1.forward", {tensor(0.1, "[64]"), tensor(1.5 * size, "[64]")},
              {tensor(0.1, "[64]")}, {tensor(0.1, "[64]"), tensor(size, "[64]")}, {tensor(0.1, "[64]")});
  const RankDiagnosis rank = diagnosed(
      two, {},
      modules_of({{"Tensor.lerp_.0.forward", "optimizer"}, {"Tensor.lerp_.1.forward", "optimizer"}}));
  CHECK(no_evidence(rank) == (size < 0.5));
}

TEST_CASE("the epsilon of a fused operator against the number that composed ones add") {
  const auto half = [](double size) { return tensor(size, "[4, 64]", "torch.bfloat16"); };
  Two two;
  std::string epsilon = "1e-06";
  SUBCASE("the same") {}
  SUBCASE("another") {
    epsilon = "0.01";
  }
  two.target.forward("NPU.npu_rms_norm.0.forward", {half(1)}, {half(2)},
                     {named("epsilon", scalar("float", epsilon))});
  two.golden.forward("Tensor.pow.0.forward", {half(1)}, {half(0.7)})
      .forward("Tensor.__add__.0.forward", {half(0.7), scalar("float", "1e-06")}, {half(0.71)})
      .forward("Torch.rsqrt.0.forward", {half(0.71)}, {half(2)});
  two.forward("Functional.silu.0.forward", {half(2)}, {half(3)}, {half(2)}, {half(3)});
  const RankDiagnosis rank = diagnosed(two);
  if (epsilon == "0.01") {
    CHECK(first(rank).confidence == Confidence::likely);
    CHECK(first(rank).text.find("epsilon is 0.01, golden 1e-06") != std::string::npos);
  } else {
    CHECK(no_evidence(rank));
  }
}

/// Linear layers, a product by a number in front of a norm, and a linear layer that takes what agrees again.
Two factor_before(const std::string& norm, bool golden_multiplies) {
  Two two = three_inputs();
  const auto number = [](double value) { return scalar("float", python_repr(value)); };
  two.target.forward("Torch.mul.0.forward", {tensor(4), number(3)}, {tensor(12)});
  if (golden_multiplies) two.golden.forward("Torch.mul.0.forward", {tensor(4), number(1)}, {tensor(4)});
  two.forward(norm + ".0.forward", {tensor(12), scalar("int", "64")}, {tensor(1.5)},
              {tensor(4), scalar("int", "64")}, {tensor(1.5)});
  const std::string out = tensor(2.5);
  two.forward("Functional.linear.3.forward", {tensor(1.5), tensor(0.7)}, {out}, {tensor(1.5), tensor(0.7)},
              {out});
  return two;
}

TEST_CASE("a norm, or an unknown operation, may hide an error before it") {
  for (const std::string norm :
       {"Functional.layer_norm", "Functional.rms_norm", "NPU.npu_rms_norm", "NPU.npu_add_rms_norm",
        "Functional.fused_rms_norm", "MindSpeed.rms_norm.fused_rms_norm", "NPU.npu_invented",
        "Functional.invented"}) {
    CAPTURE(norm);
    const RankDiagnosis other = diagnosed(factor_before(norm, true));
    CHECK(first(other).kind == Kind::argument);
    CHECK(first(other).entry == "Torch.mul.0.forward");
    CHECK(first(other).confidence == Confidence::certain);
    const RankDiagnosis more = diagnosed(factor_before(norm, false));
    CHECK(first(more).kind == Kind::added);
    CHECK(first(more).entry == "Torch.mul.0.forward");
    CHECK(first(more).confidence == Confidence::certain);
  }
}

}  // namespace msprobe::diagnosis::rewrites_test
