// SPDX-License-Identifier: Apache-2.0
// Two implementations of one model: where they agree, and where they stop to.
#include "diagnosis/code_bases.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "diagnosis/conclusion.hpp"
#include "diagnosis/meeting_points.hpp"
#include "unit/diagnosis/rank_pairs.hpp"

namespace msprobe::diagnosis::code_bases_test {
using testing::DumpText;
using testing::first;
using testing::named;
using testing::tensor;

/// A layer of both implementations: other modules, other operations, and tensors of the same content between.
/// `error`: of what the target makes of the product, and all that follows.
void add_layer(DumpText& target, DumpText& golden, int layer, double error) {
  const std::string at = std::to_string(layer);
  const auto size = [&](double part) { return 10.0 * layer + part; };
  const auto wrong = [&](double part) { return tensor(size(part) * (1 + error)); };
  target.forward("Functional.linear." + at + ".forward", {wrong(1), tensor(0.1, "[64, 64]")}, {wrong(2)});
  target.forward("Module.blocks." + at + ".up.Linear.forward.0", {wrong(1)}, {wrong(2)}, {},
                 {named("weight", tensor(0.1, "[64, 64]"))});
  target.forward("Functional.gelu." + at + ".forward", {wrong(2)}, {wrong(3)});
  target.forward("Tensor.add." + at + ".forward", {wrong(3), wrong(1)}, {wrong(11)});
  golden.forward("Torch.addmm." + at + ".forward", {tensor(0.3), tensor(size(1))}, {tensor(size(2))});
  golden.forward("Module.h." + at + ".fc.Conv1D.forward.0", {tensor(size(1))}, {tensor(size(2))}, {},
                 {named("weight", tensor(0.1, "[64, 64]"))});
  golden.forward("Torch.pow." + at + ".forward", {tensor(size(2))}, {tensor(size(2.6))});
  golden.forward("Torch.tanh." + at + ".forward", {tensor(size(2.6))}, {tensor(size(2.8))});
  golden.forward("Tensor.__mul__." + at + ".forward", {tensor(size(2.8)), tensor(size(2))},
                 {tensor(size(3))});
  golden.forward("Tensor.__add__." + at + ".forward", {tensor(size(3)), tensor(size(1))}, {tensor(size(11))});
}

/// Four layers and a loss; from layer `wrong_from` on, the target is off, and has that loss.
testing::Two port(int wrong_from, double gradient = 5, double loss = 0.7) {
  testing::Two two;
  bool off = false;
  for (int layer = 0; layer < 4; ++layer) {
    off = off || layer == wrong_from;
    add_layer(two.target, two.golden, layer, off ? 0.02 : 0);
  }
  two.target.forward("Functional.cross_entropy.0.forward", {tensor(41)}, {tensor(off ? loss : 0.6, "[]")});
  two.golden.forward("Functional.nll_loss.0.forward", {tensor(41)}, {tensor(0.6, "[]")});
  for (DumpText* side : {&two.target, &two.golden})
    side->backward("Functional.loss.0.backward", {tensor(1, "[]")}, {tensor(2)});
  two.target.gradients("Module.blocks.0.up.Linear.parameters_grad.0",
                       {"\"weight\": [" + tensor(gradient, "[64, 64]") + "]"});
  two.golden.gradients("Module.h.0.fc.Conv1D.parameters_grad.0",
                       {"\"weight\": [" + tensor(5, "[64, 64]") + "]"});
  return two;
}

/// As diagnose() does it.
RankDiagnosis diagnosed(const testing::Two& two, bool& recognized) {
  measuring::MeasuredRank rank;
  rank.target = two.target.side();
  rank.golden = two.golden.side();
  rank.alignment = std::make_shared<const Alignment>(align(rank.target, rank.golden, nullptr, nullptr));
  recognized = are_two_code_bases(rank);
  History history;
  return diagnose_code_bases(rank, {}, history);
}

TEST_CASE("a right port agrees to the end") {
  bool recognized = false;
  const RankDiagnosis rank = diagnosed(port(-1), recognized);
  CHECK(recognized);
  CHECK(rank.findings.empty());
  REQUIRE(rank.notes.size() == 1);
  CHECK(rank.notes[0].find("the implementations agree at 13 places, from Functional.linear.0.forward to "
                           "Functional.cross_entropy.0.forward, and so do the gradients of all parameters "
                           "together") != std::string::npos);
  CHECK_FALSE(conclude({rank}).has_culprit());
  CHECK(conclude({rank}).is_clear());
}

TEST_CASE("a wrong port has a stretch") {
  bool recognized = false;
  const RankDiagnosis rank = diagnosed(port(2), recognized);
  CHECK(recognized);
  const Finding& found = first(rank);
  CHECK(found.kind == Kind::stretch);
  CHECK(found.confidence == Confidence::likely);  // nothing is certain but equality
  CHECK(found.entry == "Functional.linear.2.forward");
  CHECK(found.golden_entry == "Torch.addmm.2.forward");
  CHECK(
      found.text.starts_with("the implementations agree at 6 places, from Functional.linear.0.forward to "
                             "Tensor.add.1.forward (golden Tensor.__add__.1.forward), and not behind: "));
  CHECK(conclude({rank}).has_culprit());
}

TEST_CASE("a loss alone is no agreement") {
  bool recognized = false;
  const RankDiagnosis rank = diagnosed(port(1, 5, 0.6), recognized);
  CHECK(first(rank).kind == Kind::stretch);
  CHECK(first(rank).entry == "Functional.linear.1.forward");
}

TEST_CASE("a forward that agrees with gradients that do not") {
  bool recognized = false;
  const RankDiagnosis rank = diagnosed(port(-1, 6), recognized);
  CHECK(
      first(rank).text.ends_with("and the gradients of all parameters together do not: norm 96, golden 80"));
}

TEST_CASE("one program and its changes are no two code bases") {
  testing::Two two;
  for (int layer = 0; layer < 4; ++layer) {
    const std::string at = std::to_string(layer);
    for (DumpText* side : {&two.target, &two.golden}) {
      side->forward("Functional.linear." + at + ".forward", {tensor(1), tensor(0.1, "[64, 64]")},
                    {tensor(2)});
      side->forward("Module.blocks." + at + ".up.Linear.forward.0", {tensor(1)}, {tensor(2)}, {},
                    {named("weight", tensor(0.1, "[64, 64]"))});
    }
    two.target.forward("Functional.gelu." + at + ".forward", {tensor(2)}, {tensor(3)});
    two.golden.forward("Functional.silu." + at + ".forward", {tensor(2)}, {tensor(4)});
  }
  bool recognized = true;
  diagnosed(two, recognized);
  CHECK_FALSE(recognized);
}

TEST_CASE("nothing to meet at") {
  testing::Two two;
  two.target.forward("Functional.linear.0.forward", {tensor(1)}, {tensor(2, "[4, 8]")});
  two.golden.forward("Torch.addmm.0.forward", {tensor(1)}, {tensor(3, "[4, 16]")});
  bool recognized = true;
  const RankDiagnosis rank = diagnosed(two, recognized);
  CHECK_FALSE(recognized);  // two calls tell nothing
  CHECK(first(rank).text.starts_with("the implementations agree nowhere"));
  bool none = true;
  CHECK(diagnosed(testing::Two(), none).findings.empty());
}

TEST_CASE("meeting points stand in an order of both sides") {
  DumpText ours;
  DumpText theirs;
  // The table is made first on one side and last on the other; all else is in order.
  theirs.forward("Tensor.cos.0.forward", {tensor(1)}, {tensor(9)});
  for (int i = 2; i < 6; ++i) {
    ours.forward("Torch.exp." + std::to_string(i) + ".forward", {tensor(1)}, {tensor(i)});
    theirs.forward("Torch.log." + std::to_string(i) + ".forward", {tensor(1)}, {tensor(i == 4 ? 4.1 : i)});
  }
  ours.forward("Tensor.cos.0.forward", {tensor(1)}, {tensor(9)});
  const dump::Side target = ours.side();
  const dump::Side golden = theirs.side();
  const auto all = [](std::uint32_t) { return true; };
  const auto outputs = distinct_outputs(target, all);
  const auto golden_outputs = distinct_outputs(golden, all);
  REQUIRE(outputs.size() == 5);
  const auto meetings = meeting_points(target, outputs, golden, golden_outputs, 0);
  REQUIRE(meetings.size() == 4);
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(meetings[i].target == i);
    CHECK(meetings[i].golden == i + 1);
    CHECK(meetings[i].equal == (i != 2));
  }
  CHECK(meetings[2].error == doctest::Approx(0.1 / 4.1));
}

}  // namespace msprobe::diagnosis::code_bases_test
