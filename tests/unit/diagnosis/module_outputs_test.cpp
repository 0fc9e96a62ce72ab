// SPDX-License-Identifier: Apache-2.0
// A module's output is judged at the call that made it; values that no rule judged explain nothing.
#include <doctest/doctest.h>

#include "diagnosis/conclusion.hpp"
#include "diagnosis/rank_diagnosis.hpp"
#include "diagnosis/sentences.hpp"
#include "unit/diagnosis/rank_pairs.hpp"

namespace msprobe::diagnosis::module_outputs_test {
using testing::count;
using testing::diagnosed;
using testing::first;
using testing::modules_of;
using testing::no_evidence;
using testing::rough;
using testing::tensor;
using testing::Two;

/// A router that computes logits and their softmax, and hands on one of them.
Two router(const std::string& target, const std::string& golden) {
  const std::string weight = tensor(0.1, "[64, 64]");
  Two two;
  two.forward("Functional.linear.0.forward", {tensor(1), weight}, {rough(2, 1e-7)}, {tensor(1), weight},
              {tensor(2)});
  two.forward("Functional.softmax.0.forward", {rough(2, 1e-7)}, {rough(0.4, 1e-7)}, {tensor(2)},
              {tensor(0.4)});
  return two.forward("Module.gate.Gate.forward.0", {tensor(1)}, {target}, {tensor(1)}, {golden});
}

const testing::Construct kInGate =
    modules_of({{"Functional.linear.0.forward", "Module.gate.Gate.forward.0"},
                {"Functional.softmax.0.forward", "Module.gate.Gate.forward.0"}});

TEST_CASE("a module that hands on another of its tensors") {
  const RankDiagnosis rank = diagnosed(router(rough(0.4, 1e-7), tensor(2)), {}, kInGate);
  CHECK(first(rank).entry == "Module.gate.Gate.forward.0");
  CHECK(first(rank).kind == Kind::feed);
  CHECK(first(rank).confidence == Confidence::certain);
  CHECK(first(rank).place == "output.0");
  CHECK(no_evidence(diagnosed(router(rough(2, 1e-7), tensor(2)), {}, kInGate)));
  CHECK(no_evidence(diagnosed(router(rough(0.4, 1e-7), tensor(0.4)), {}, kInGate)));
}

TEST_CASE("unrecorded code between the last operation of a module and its end, on one side") {
  for (const bool ours : {true, false}) {
    CAPTURE(ours);
    const std::string clamped = tensor(0.9);
    const RankDiagnosis rank =
        diagnosed(router(ours ? clamped : rough(2, 1e-7), ours ? tensor(2) : clamped), {}, kInGate);
    CHECK(first(rank).entry == "Module.gate.Gate.forward.0");
    CHECK(first(rank).kind == Kind::unrecorded);
    CHECK(first(rank).confidence == Confidence::certain);
  }
}

TEST_CASE("what no rule judges, and rounding does not explain, is not called rounding") {
  // Modules answer for their outputs; no rule judges the code that gave them their inputs.
  Two two = router(rough(2, 1e-7), tensor(2));
  two.forward("Functional.linear.1.forward", {rough(2, 1e-7), tensor(0.1, "[64, 64]")}, {rough(3, 1e-7)},
              {tensor(2), tensor(0.1, "[64, 64]")}, {tensor(3)});
  two.forward("Module.block.Block.forward.0", {rough(2, 1e-7), tensor(5.5)}, {rough(3, 1e-7)},
              {tensor(2), tensor(5)}, {tensor(3)});
  const testing::Construct modules =
      modules_of({{"Functional.linear.0.forward", "Module.gate.Gate.forward.0"},
                  {"Functional.softmax.0.forward", "Module.gate.Gate.forward.0"},
                  {"Functional.linear.1.forward", "Module.block.Block.forward.0"}});
  const RankDiagnosis rank = diagnosed(two, {}, modules);
  CHECK(no_evidence(rank));
  CHECK(count(rank, Origin::unexplained) == 1);
  const Diagnosis all = conclude({rank});
  CHECK_FALSE(all.is_clear());
  CHECK(all.findings.front().kind == Kind::unexplained);
  CHECK(all.findings.front().entry == "Module.block.Block.forward.0");
  CHECK(all.findings.front().place == "input.1");
}

TEST_CASE("what follows from something unexplained is unexplained, too") {
  // No finding comes from the rules that judge where values come from: no other rule takes their place.
  const std::string weight = tensor(0.1, "[64, 64]");
  Two two = router(rough(0.4, 1e-7), tensor(2));
  two.forward("Functional.linear.1.forward", {rough(0.4, 1e-7), weight}, {rough(3, 0.2)}, {tensor(2), weight},
              {tensor(3)});
  const RankDiagnosis rank = diagnosed(
      two, [](testing::Asked& asked) { asked.options.without = {Rule::source}; }, kInGate);
  CHECK(count(rank, Origin::unexplained) == 3);  // the module's output, and what the call takes and gives
  CHECK(count(rank, Origin::rounding) > 0);
}

}  // namespace msprobe::diagnosis::module_outputs_test
