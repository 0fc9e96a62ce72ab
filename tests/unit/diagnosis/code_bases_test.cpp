// SPDX-License-Identifier: Apache-2.0
// Two implementations of one model: where they agree, and where they stop to.
#include "diagnosis/code_bases.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include "diagnosis/conclusion.hpp"
#include "diagnosis/content_flow.hpp"
#include "diagnosis/content_partners.hpp"
#include "diagnosis/meeting_points.hpp"
#include "diagnosis/other_code.hpp"
#include "unit/diagnosis/rank_pairs.hpp"

namespace msprobe::diagnosis::code_bases_test {
using pairing::align;
using pairing::Alignment;
using pairing::kNone;
using testing::DumpText;
using testing::first;
using testing::named;
using testing::tensor;

/// A layer of both implementations: other modules, other operations, the same parameter, and tensors of the
/// same content between. `before`, `error`: of the input and the output of the target's activation, and of
/// all that follows.
void add_layer(DumpText& target, DumpText& golden, int layer, double before, double error) {
  const std::string at = std::to_string(layer);
  const auto size = [&](double part) { return 10.0 * layer + part; };
  const auto ours = [&](double part, double off) { return tensor(size(part) * (1 + off)); };
  const std::string weight = tensor(0.1 + layer, "[64, 64]");
  target.forward("Functional.linear." + at + ".forward", {ours(1, before), weight}, {ours(2, before)});
  target.forward("Module.blocks." + at + ".up.Linear.forward.0", {ours(1, before)}, {ours(2, before)}, {},
                 {named("weight", weight)});
  target.forward("Functional.gelu." + at + ".forward", {ours(2, before)}, {ours(3, error)});
  target.forward("Tensor.add." + at + ".forward", {ours(3, error), ours(1, before)}, {ours(11, error)});
  golden.forward("Torch.addmm." + at + ".forward", {tensor(0.3), tensor(size(1)), weight}, {tensor(size(2))});
  golden.forward("Module.h." + at + ".fc.Conv1D.forward.0", {tensor(size(1))}, {tensor(size(2))}, {},
                 {named("weight", weight)});
  golden.forward("Torch.pow." + at + ".forward", {tensor(size(2))}, {tensor(size(2.6))});
  golden.forward("Torch.tanh." + at + ".forward", {tensor(size(2.6))}, {tensor(size(2.8))});
  golden.forward("Tensor.__mul__." + at + ".forward", {tensor(size(2.8)), tensor(size(2))},
                 {tensor(size(3))});
  golden.forward("Tensor.__add__." + at + ".forward", {tensor(size(3)), tensor(size(1))}, {tensor(size(11))});
}

/// Four layers and a loss; the activation of layer `wrong` is off, and the loss is what is given then.
testing::Two port(int wrong, double gradient = 5, double loss = 0.7) {
  testing::Two two;
  bool off = false;
  for (int layer = 0; layer < 4; ++layer) {
    const bool before = off;
    off = off || layer == wrong;
    add_layer(two.target, two.golden, layer, before ? 0.01 : 0, off ? 0.01 : 0);
  }
  two.target.forward("Functional.cross_entropy.0.forward", {tensor(off ? 41.41 : 41)},
                     {tensor(off ? loss : 0.6, "[]")});
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
  CHECK(rank.agreement ==
        "both implementations agree at 13 of 13 places, from Functional.linear.0.forward to "
        "Functional.cross_entropy.0.forward, and so do the gradients of all parameters together");
  REQUIRE(rank.meeting_points.size() == 13);
  CHECK(rank.meeting_points[1].entry == "Functional.gelu.0.forward");
  CHECK(rank.meeting_points[1].golden_entry == "Tensor.__mul__.0.forward");
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
  CHECK(found.entry == "Functional.gelu.2.forward");
  CHECK(found.golden_entry == "Torch.pow.2.forward");
  CHECK(found.operations == std::vector<std::string>{"Functional.gelu.2.forward"});
  CHECK(found.golden_operations ==
        std::vector<std::string>{"Torch.pow.2.forward", "Torch.tanh.2.forward", "Tensor.__mul__.2.forward"});
  CHECK(found.text ==
        "both agree up to Functional.linear.2.forward (golden Torch.addmm.2.forward); from there this run "
        "computes Functional.gelu, golden Torch.pow, Torch.tanh, Tensor.__mul__, which should be the same at "
        "Functional.gelu.2.forward (golden Tensor.__mul__.2.forward): error 1.0e-02");
  CHECK(conclude({rank}).has_culprit());
}

TEST_CASE("a loss alone is no agreement") {
  bool recognized = false;
  const RankDiagnosis rank = diagnosed(port(1, 5, 0.6), recognized);
  CHECK(first(rank).kind == Kind::stretch);
  CHECK(first(rank).entry == "Functional.gelu.1.forward");
}

TEST_CASE("a forward that agrees with a gradient that does not") {
  bool recognized = false;
  const RankDiagnosis rank = diagnosed(port(-1, 6), recognized);
  CHECK(
      first(rank).text ==
      "the forward agrees; its parameter blocks.0.up.weight (golden h.0.fc.weight) has a different gradient: "
      "error 2.0e-01");
  CHECK(first(rank).entry == "Functional.linear.0.forward");
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

TEST_CASE("a call with NaN in the output of one code base alone is the stretch") {
  const std::string nan =
      R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4, 64], "Max": NaN, "Min": NaN, "Mean": NaN, "Norm": NaN})";
  testing::Two wrong;
  add_layer(wrong.target, wrong.golden, 0, 0, 0);
  wrong.target.forward("Functional.silu.0.forward", {tensor(11)}, {nan});
  wrong.golden.forward("Torch.sigmoid.0.forward", {tensor(11)}, {tensor(12)});
  bool recognized = false;
  const RankDiagnosis rank = diagnosed(wrong, recognized);
  CHECK(first(rank).entry == "Functional.silu.0.forward");
  CHECK(first(rank).text == "its output has NaN, which golden has nowhere; later calls are not compared");
}

TEST_CASE("NaN in a view of memory that is not written yet is not its output") {
  const std::string nan =
      R"({"type": "torch.Tensor", "dtype": "torch.float32", "shape": [4, 64], "Max": NaN, "Min": NaN, "Mean": NaN, "Norm": NaN})";
  testing::Two two = port(-1);
  two.target.forward("Tensor.narrow.0.forward", {nan}, {nan});
  bool recognized = false;
  CHECK(testing::no_evidence(diagnosed(two, recognized)));
  CHECK(recognized);
}

TEST_CASE("rows of two code bases pair by content and role") {
  const testing::Two two = port(2);
  measuring::MeasuredRank rank;
  rank.target = two.target.side();
  rank.golden = two.golden.side();
  const std::vector<std::uint32_t> partners = partners_by_content(rank);
  const auto partner_of = [&](std::string_view name) -> std::string {
    for (std::uint32_t i = 0; i < partners.size(); ++i) {
      if (rank.target.name(rank.target.items[i]) != name) continue;
      return partners[i] == kNone ? "none" : std::string(rank.golden.name(rank.golden.items[partners[i]]));
    }
    return "no such item";
  };
  CHECK(partner_of("Functional.gelu.0.forward.output.0") == "Tensor.__mul__.0.forward.output.0");
  CHECK(partner_of("Functional.gelu.0.forward.input.0") == "Torch.pow.0.forward.input.0");
  CHECK(partner_of("Functional.gelu.2.forward.output.0") == "none");
  CHECK(partner_of("Module.blocks.0.up.Linear.forward.0.parameters.weight") ==
        "Module.h.0.fc.Conv1D.forward.0.parameters.weight");
  CHECK(partner_of("Module.blocks.0.up.Linear.parameters_grad.0.weight") ==
        "Module.h.0.fc.Conv1D.parameters_grad.0.weight");
}

TEST_CASE("other parameters that compute the same are not evidence") {
  // Four layers of one code base; golden has its adapters beside its weights, and the target has them in
  // these.
  const auto diagnosed_by = [](double last) {
    testing::Two two;
    for (int layer = 0; layer < 4; ++layer) {
      const std::string name = "Functional.linear." + std::to_string(layer) + ".forward";
      const double to = layer == 3 ? last : 2.0 + layer;
      two.target.forward(name, {tensor(1.0 + layer), tensor(10.5 + layer, "[64, 64]")}, {tensor(to)});
      two.golden.forward(name, {tensor(1.0 + layer), tensor(20.5 + 2 * layer, "[64, 64]")},
                         {tensor(2.0 + layer)});
    }
    measuring::MeasuredRank rank;
    rank.target = two.target.side();
    rank.golden = two.golden.side();
    rank.alignment = std::make_shared<const Alignment>(align(rank.target, rank.golden, nullptr, nullptr));
    rank.precision = std::make_shared<const measuring::StatisticsPrecision>(rank.target, rank.golden);
    RankHistory past;
    DiagnosisOptions options;
    options.two_code_bases = are_two_code_bases(rank);
    return diagnose(rank, options, {}, past);
  };
  const RankDiagnosis same = diagnosed_by(5);
  CHECK(same.findings.empty());
  CHECK(same.agreement.starts_with("both implementations agree at 4 of 4 places"));
  REQUIRE(!same.notes.empty());
  CHECK(same.notes[0].starts_with(
      "4 parameters differ by name, the first Functional.linear.0.forward, and what is"));
  const RankDiagnosis other = diagnosed_by(6);
  CHECK(first(other).kind == Kind::parameter);
}

TEST_CASE("nothing to meet at") {
  testing::Two two;
  two.target.forward("Functional.linear.0.forward", {tensor(1)}, {tensor(2, "[4, 8]")});
  two.golden.forward("Torch.addmm.0.forward", {tensor(1)}, {tensor(3, "[4, 16]")});
  bool recognized = true;
  const RankDiagnosis rank = diagnosed(two, recognized);
  CHECK_FALSE(recognized);  // two calls tell nothing
  CHECK(first(rank).kind == Kind::stretch);
  CHECK(rank.agreement == "the implementations agree nowhere");
  bool none = true;
  CHECK(diagnosed(testing::Two(), none).findings.empty());
}

ContentFlow forward_of(const dump::Side& side) {
  return {side, nullptr, dump::Direction::forward, [](std::uint32_t) { return true; }};
}

TEST_CASE("contents meet in an order of both sides, and tables where they are") {
  DumpText ours;
  DumpText theirs;
  // The table is made first on one side and last on the other; all else is in order.
  theirs.forward("Tensor.cos.0.forward", {tensor(1)}, {tensor(9)});
  for (int i = 2; i < 6; ++i) {
    ours.forward("Torch.exp." + std::to_string(i) + ".forward", {tensor(1)}, {tensor(i)});
    theirs.forward("Torch.log." + std::to_string(i) + ".forward", {tensor(1)}, {tensor(i == 4 ? 4.05 : i)});
  }
  ours.forward("Tensor.cos.0.forward", {tensor(1)}, {tensor(9)});
  const dump::Side target = ours.side();
  const dump::Side golden = theirs.side();
  const ContentFlow flow = forward_of(target);
  const ContentFlow golden_flow = forward_of(golden);
  REQUIRE(flow.contents().size() == 6);
  const Meetings met = meet(flow, golden_flow, map_parameters(flow, golden_flow, 1e-5), {1e-5, 1e-5});
  // 1, 2, 3, 4, 5 and 9 here; 1, 9, 2, 3, 4.05 and 5 there.
  CHECK(met.golden_of == std::vector<std::uint32_t>{0, 2, 3, kNone, 5, 1});
  CHECK_FALSE(met.golden_meets[4]);
  const auto near = near_pairs(flow, {3}, golden_flow, {3, 4});
  REQUIRE(near.size() == 1);
  CHECK(near[0].golden == 4);
  CHECK(near[0].error == doctest::Approx(0.05 / 4.05));
}

}  // namespace msprobe::diagnosis::code_bases_test
