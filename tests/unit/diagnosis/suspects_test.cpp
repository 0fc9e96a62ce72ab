// SPDX-License-Identifier: Apache-2.0
// Differences of the code that no value shows at first, and the values that they make wrong later.
#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "diagnosis/rank_diagnosis.hpp"
#include "unit/diagnosis/rank_pairs.hpp"

namespace msprobe::diagnosis::suspects_test {
using testing::diagnosed;
using testing::first;
using testing::is_one_cause;
using testing::named;
using testing::no_evidence;
using testing::rough;
using testing::scalar;
using testing::tensor;
using testing::Two;

namespace {

const std::string kWeight = tensor(0.1, "[64, 64]");
const std::string kLoss = tensor(9, "[]");

std::string mask(int trues) {
  return R"({"type": "torch.Tensor", "dtype": "torch.bool", "shape": [4, 64], "Max": true, "Min": false,
             "Mean": null, "Norm": null, "True_count": )" +
         std::to_string(trues) + "}";
}

/// A linear layer and the sum of its output; golden may run more after them.
Two loss() {
  Two two;
  two.forward("Functional.linear.0.forward", {tensor(1), kWeight}, {tensor(2)}, {tensor(1), kWeight},
              {tensor(2)});
  two.forward("Tensor.sum.0.forward", {tensor(2)}, {kLoss}, {tensor(2)}, {kLoss});
  return two;
}

void wrong_gradient(Two& two) {
  two.backward("Tensor.sum.0.backward", {tensor(1, "[]")}, {tensor(3)}, {tensor(1, "[]")}, {tensor(3)});
  two.backward("Functional.linear.0.backward", {rough(4, 0.5)}, {rough(5, 0.5)}, {tensor(4)}, {tensor(5)});
}

bool says(const Finding& found, std::string_view text) {
  return found.text.find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("a gradient that is wrong leads to what one side alone makes of the output") {
  Two two = loss();
  two.golden.forward("Tensor.abs.0.forward", {tensor(2)}, {tensor(2.5)});
  two.golden.forward("Tensor.mean.0.forward", {tensor(2.5)}, {tensor(0.2, "[]")});
  wrong_gradient(two);
  const RankDiagnosis rank = diagnosed(two);
  CHECK(first(rank).kind == Kind::removed);
  CHECK(first(rank).entry == "Tensor.abs.0.forward");
  CHECK(says(first(rank),
             "golden runs Tensor.abs, Tensor.mean here, this run does not; error 5.0e-01 at "
             "Functional.linear.0.backward"));
  CHECK(is_one_cause(rank));
}

TEST_CASE("what one side alone runs elsewhere is no cause of a gradient") {
  Two two = loss();
  two.golden.forward("Tensor.abs.0.forward", {tensor(7)}, {tensor(7.5)});
  wrong_gradient(two);
  CHECK(first(diagnosed(two)).entry == "Functional.linear.0.backward");
}

TEST_CASE("what one side alone runs between a right gradient and a wrong one is its cause") {
  Two two = loss();
  two.backward("Tensor.sum.0.backward", {tensor(1, "[]")}, {tensor(3)}, {tensor(1, "[]")}, {tensor(3)});
  two.golden.forward("Distributed.all_reduce.0.forward", {tensor(3.5)}, {tensor(4)});
  two.backward("Functional.linear.0.backward", {rough(4, 0.5)}, {rough(5, 0.5)}, {tensor(4)}, {tensor(5)});
  CHECK(first(diagnosed(two)).entry == "Distributed.all_reduce.0.forward");
}

TEST_CASE("an argument that statistics do not show is seen where the elements are mixed") {
  Two two;
  two.forward("Functional.pad.0.forward", {tensor(1), scalar("int", "1")}, {tensor(1, "[4, 66]")},
              {tensor(1), scalar("int", "2")}, {tensor(1, "[4, 66]")});
  two.forward("Functional.linear.0.forward", {tensor(1, "[4, 66]"), kWeight}, {rough(2, 0.3)},
              {tensor(1, "[4, 66]"), kWeight}, {tensor(2)});
  const RankDiagnosis rank = diagnosed(two);
  CHECK(first(rank).kind == Kind::argument);
  CHECK(first(rank).entry == "Functional.pad.0.forward");
  CHECK(first(rank).confidence == Confidence::likely);
  CHECK(is_one_cause(rank));
}

TEST_CASE("without a value that is wrong a silent difference stays a hint") {
  Two two = loss();
  two.golden.forward("Tensor.abs.0.forward", {tensor(2)}, {tensor(2.5)});
  CHECK(no_evidence(diagnosed(two)));
}

TEST_CASE("what a step leaves to the next is named in its own step") {
  Two before;
  before.forward("Functional.linear.0.forward", {tensor(1), kWeight}, {tensor(2)}, {tensor(1), kWeight},
                 {tensor(2)});
  before.target.forward("Tensor.add_.0.forward", {kWeight, tensor(0.2)}, {rough(0.11, 0.4, "[64, 64]")});
  before.golden.forward("Tensor.sub_.0.forward", {kWeight, tensor(0.2)}, {tensor(0.11, "[64, 64]")});
  Two behind;
  behind.forward("Functional.linear.0.forward", {tensor(1), rough(0.11, 0.4, "[64, 64]")}, {rough(2, 0.4)},
                 {tensor(1), tensor(0.11, "[64, 64]")}, {tensor(2)});
  History history;
  REQUIRE(no_evidence(diagnosed(before, history)));
  const RankDiagnosis rank = diagnosed(behind, history);
  CHECK(first(rank).entry == "Tensor.add_.0.forward");
  CHECK(first(rank).golden_entry == "Tensor.sub_.0.forward");
  CHECK(first(rank).target_api == pairing::kNone);  // its number is that of another step's entry
  CHECK(is_one_cause(rank));
}

TEST_CASE("a gradient that trains no parameter is a hint") {
  const std::string trained = ", \"requires_grad\": true";
  const std::string cut = ", \"requires_grad\": false";
  const auto input = [](std::string_view more) { return tensor(1, "[4, 64]", "torch.float32", more); };
  for (const bool same : {true, false}) {
    Two two;
    two.forward("Module.l.Linear.forward.0", {input(trained)}, {tensor(2)}, {input(cut)}, {tensor(2)});
    two.target.backward("Module.l.Linear.backward.0", {tensor(3)}, {tensor(4)});
    two.golden.backward("Module.l.Linear.backward.0", {tensor(3)}, {});
    for (testing::DumpText* side : {&two.target, &two.golden}) {
      const bool other = !same && side == &two.target;
      side->gradients("Module.l.Linear.parameters_grad.0",
                      {named("weight", "[" + (other ? rough(5, 0.5) : tensor(5)) + "]")});
    }
    CAPTURE(same);
    CHECK(no_evidence(diagnosed(two)) == same);
  }
}

TEST_CASE("masks of one shape differ by how many elements are true") {
  Two two;
  two.forward("Tensor.__and__.0.forward", {mask(90)}, {mask(89)}, {mask(90)}, {mask(89)});
  two.forward("Functional.softmax.0.forward", {tensor(1), mask(156)}, {rough(2, 0.3)}, {tensor(1), mask(89)},
              {tensor(2)});
  const RankDiagnosis rank = diagnosed(two);
  CHECK(first(rank).entry == "Functional.softmax.0.forward");
  CHECK(first(rank).place == "input.1");
}

TEST_CASE(
    "a collective of the backward that golden alone runs is the cause of a gradient that is wrong later") {
  // Its result is added to what comes in on another way before anything is recorded.
  Two two = loss();
  two.backward("Tensor.sum.0.backward", {tensor(1, "[]")}, {tensor(3)}, {tensor(1, "[]")}, {tensor(3)});
  two.golden.forward("Distributed.all_reduce.0.forward", {tensor(7)}, {tensor(8)});
  two.backward("Tensor.topk.0.backward", {tensor(6)}, {tensor(6.5)}, {tensor(6)}, {tensor(6.5)});
  two.backward("Functional.linear.0.backward", {rough(4, 0.5)}, {rough(5, 0.5)}, {tensor(4)}, {tensor(5)});
  const RankDiagnosis rank = diagnosed(two);
  CHECK(first(rank).entry == "Distributed.all_reduce.0.forward");
  CHECK(says(first(rank), "golden runs Distributed.all_reduce here, this run does not"));
  CHECK(is_one_cause(rank));
}

TEST_CASE("a backward that records nothing of what it sends back is named where that arrives wrong") {
  Two two;
  two.forward("Module.a.GELU.forward.0", {tensor(1)}, {tensor(2)}, {tensor(1)}, {tensor(2)});
  two.forward("Module.b.Dropout.forward.0", {tensor(2)}, {tensor(3)}, {tensor(2)}, {tensor(3)});
  two.backward("Module.b.Dropout.backward.0", {tensor(4)}, {}, {tensor(4)}, {});
  two.backward("Module.a.GELU.backward.0", {rough(5, 0.3)}, {}, {tensor(5)}, {});
  const Finding found = first(diagnosed(two));
  CHECK(found.entry == "Module.a.GELU.backward.0");
  CHECK(says(found, "Module.b.Dropout.0 uses that output and its own gradient is right"));
  CHECK(says(found, "or draws other random numbers than its forward"));
}

TEST_CASE("a gradient that is added up over passes says so") {
  Two two;
  const auto pass = [&](std::string_view call, const std::string& gradient, const std::string& golden) {
    two.backward("Module.l.Linear.backward." + std::string(call), {tensor(1)}, {tensor(2)}, {tensor(1)},
                 {tensor(2)});
    const std::string name = "Module.l.Linear.parameters_grad." + std::string(call);
    two.target.gradients(name, {named("weight", "[" + gradient + "]")});
    two.golden.gradients(name, {named("weight", "[" + golden + "]")});
  };
  pass("0", kWeight, kWeight);
  pass("1", rough(0.2, 0.5, "[64, 64]"), tensor(0.2, "[64, 64]"));
  CHECK(says(first(diagnosed(two)), "if the gradients of this step's backward passes accumulate"));
}

TEST_CASE("the shapes of tensors of another size are printed") {
  Two two;
  two.forward("Functional.relu.0.forward", {tensor(1, "[4, 16]")}, {tensor(2, "[4, 16]")},
              {tensor(1, "[4, 10]")}, {tensor(2, "[4, 10]")});
  bool told = false;
  for (const Finding& found : diagnosed(two).findings) {
    told = told || says(found, "has shape [4, 16], golden [4, 10]");
    CHECK(!says(found, "differs by infinite"));
  }
  CHECK(told);
}

}  // namespace msprobe::diagnosis::suspects_test
