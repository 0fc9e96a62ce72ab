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

TEST_CASE("a normalization before or after the residual") {
  const std::string weight = tensor(0.1, "[64, 64]");
  // A residual around each of two layers; their names show that n1 and n2 are of one class.
  const auto norm = [](DumpText& side, int number, double in, double out) {
    const std::string call = std::to_string(number);
    side.forward("Functional.layer_norm." + call + ".forward", {tensor(in)}, {tensor(out)});
    side.forward("Module.n" + call + ".LayerNorm.forward.0", {tensor(in)}, {tensor(out)});
  };
  const auto layer = [&](DumpText& side, int number, double in, double out, double residual, double sum) {
    const std::string call = std::to_string(number);
    side.forward("Functional.linear." + call + ".forward", {tensor(in), weight}, {tensor(9 * in)});
    side.forward("Functional.gelu." + call + ".forward", {tensor(9 * in)}, {tensor(8 * in)});
    side.forward("Functional.dropout." + call + ".forward", {tensor(8 * in)}, {tensor(out)});
    side.forward("Tensor.__add__." + call + ".forward", {tensor(residual), tensor(out)}, {tensor(sum)});
  };
  const std::string table = tensor(7, "[40, 64]");
  DumpText before;
  before.forward("Functional.embedding.0.forward", {table}, {tensor(1)});
  norm(before, 0, 1, 2);
  layer(before, 0, 2, 3, 1, 4);
  norm(before, 1, 4, 5);
  layer(before, 1, 5, 6, 4, 7);
  DumpText after;
  after.forward("Functional.embedding.0.forward", {table}, {tensor(1)});
  layer(after, 0, 1, 3.3, 1, 4.3);
  norm(after, 0, 4.3, 4.6);
  layer(after, 1, 4.6, 6.4, 4.6, 7.7);
  norm(after, 1, 7.7, 8);
  const auto modules = modules_of({{"Functional.layer_norm.0.forward", "Module.n0.LayerNorm.forward.0"},
                                   {"Functional.layer_norm.1.forward", "Module.n1.LayerNorm.forward.0"}});
  Two two;
  two.target = before;
  two.golden = after;
  const RankDiagnosis rank = diagnosed(
      two, [&](testing::Asked& asked) { asked.rank.golden_construct = modules; }, modules);
  CHECK(first(rank).entry == "Functional.layer_norm.0.forward");
  CHECK(first(rank).text.starts_with(
      "runs Functional.layer_norm here, golden at another place, as Functional.layer_norm.0.forward; "));
}

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
