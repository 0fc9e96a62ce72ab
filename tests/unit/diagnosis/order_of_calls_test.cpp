// SPDX-License-Identifier: Apache-2.0
// Calls in another order, and a step that one side did not finish.
#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "diagnosis/rank_diagnosis.hpp"
#include "unit/diagnosis/rank_pairs.hpp"

namespace msprobe::diagnosis::order_of_calls_test {
using testing::diagnosed;
using testing::DumpText;
using testing::first;
using testing::modules_of;
using testing::no_evidence;
using testing::tensor;
using testing::Two;

namespace {

enum class Average { after, after_backward, before_backward };

/// A layer, its gradients, the update of its weight from 1 to 1.1, and an average of weights.
void step(DumpText& side, Average when) {
  const std::string old_weight = tensor(1, "[64, 64]");
  const std::string weight = tensor(1.1, "[64, 64]");
  const bool after = when == Average::after;
  const auto average = [&] {
    side.forward("Tensor.mul_.0.forward", {tensor(0.8, "[64, 64]")}, {tensor(0.72, "[64, 64]")});
    side.forward("Tensor.add_.0.forward", {tensor(0.72, "[64, 64]"), after ? weight : old_weight},
                 {tensor(after ? 0.83 : 0.82, "[64, 64]")});
  };
  side.forward("Functional.linear.0.forward", {tensor(5), old_weight}, {tensor(6)});
  side.forward("Module.fc.Linear.forward.0", {tensor(5)}, {tensor(6)}, {},
               {testing::named("weight", old_weight)});
  if (when == Average::before_backward) average();
  side.backward("Functional.linear.0.backward", {tensor(7)}, {tensor(8)});
  side.backward("Module.fc.Linear.backward.0", {tensor(7)}, {tensor(8)});
  side.gradients("Module.fc.Linear.parameters_grad.0", {"\"weight\": [" + tensor(9, "[64, 64]") + "]"});
  if (when == Average::after_backward) average();
  side.forward("Tensor.addcdiv_.0.forward", {old_weight, tensor(9, "[64, 64]")}, {weight});
  if (after) average();
}

}  // namespace

TEST_CASE("an average of weights before the optimizer") {
  const auto with = [](Average when) {
    Two two;
    step(two.target, when);
    step(two.golden, Average::after);
    return diagnosed(two, {},
                     modules_of({{"Tensor.addcdiv_.0.forward", "optimizer"},
                                 {"Functional.linear.0.forward", "Module.fc.Linear.forward.0"}}));
  };
  for (const Average when : {Average::after_backward, Average::before_backward}) {
    const RankDiagnosis rank = with(when);
    CHECK(first(rank).entry == "Tensor.add_.0.forward");
    CHECK(first(rank).confidence == Confidence::certain);
    CHECK(first(rank).text ==
          "runs before Tensor.addcdiv_.0.forward, in golden after it; input.1 differs by 9.1e-02");
  }
  CHECK(no_evidence(with(Average::after)));
}

TEST_CASE("a step that failed before its backward is no other code") {
  Two two;
  step(two.golden, Average::after);
  two.target.forward("Functional.linear.0.forward", {tensor(5), tensor(1, "[64, 64]")}, {tensor(6)});
  const RankDiagnosis rank = diagnosed(two);
  CHECK(no_evidence(rank));
  REQUIRE(!rank.notes.empty());
  CHECK(rank.notes[0].find("before its backward, after Functional.linear.0.forward") != std::string::npos);
}

}  // namespace msprobe::diagnosis::order_of_calls_test
