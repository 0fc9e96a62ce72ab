// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/conclusion.hpp"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "compare/sinks/answer_text.hpp"
#include "diagnosis/sentences.hpp"
#include "diagnosis/training_rule.hpp"
#include "unit/diagnosis/dumps.hpp"

namespace msprobe::diagnosis::conclusion_test {
namespace {

std::string block(const Diagnosis& diagnosis) {
  return msprobe::compare::answer_text(diagnosis);
}

Finding found_at(std::string_view entry, std::uint32_t api, Confidence confidence = Confidence::likely) {
  Finding finding;
  finding.entry = finding.golden_entry = entry;
  finding.target_api = api;
  finding.order = 2 * std::uint64_t{api} + 1;
  finding.confidence = confidence;
  finding.excess = 50;
  finding.text = "output error 1.0e-02 from inputs 1.0e-07";
  return finding;
}

RankFindings rank_of(std::int64_t number, std::vector<Finding> findings, std::string_view step = "step0") {
  RankFindings rank;
  rank.step = step;
  rank.rank = "rank" + std::to_string(number);
  rank.number = number;
  rank.threshold = 10;
  rank.findings = std::move(findings);
  for (Finding& finding : rank.findings) {
    finding.step = rank.step;
    finding.rank = rank.rank;
  }
  return rank;
}

CommPlace all_reduce(std::uint32_t api, double e_in, double e_out) {
  CommPlace place;
  place.call.operation = "all_reduce";
  place.call.call.group_ranks =
      std::make_shared<const std::vector<std::int64_t>>(std::vector<std::int64_t>{0, 1});
  place.entry = place.golden_entry = "Distributed.all_reduce.0.forward";
  place.api = api;
  place.e_in = e_in;
  place.e_out = e_out;
  place.u = 0x1p-24;
  place.arrived = e_out > 10 * (e_in + place.u);
  return place;
}

}  // namespace

TEST_CASE("what could not be read again is counted over ranks, and told with and without a culprit") {
  std::vector<RankFindings> ranks;
  ranks.push_back(rank_of(0, {}));
  ranks.push_back(rank_of(1, {}));
  ranks.back().broken_off = 1;
  ranks.back().first_broken_off = "Torch.add.0.forward: a.pt: Input/output error";
  ranks.push_back(rank_of(2, {}));
  ranks.back().broken_off = 2;
  ranks.back().first_broken_off = "Torch.mul.0.forward: b.pt: Input/output error";
  for (RankFindings& rank : ranks) rank.counts[0] = rank.coverage.compared = 5;
  const Diagnosis none = conclude(ranks);
  CHECK(none.broken_off == 3);
  CHECK(block(none).find("\n   could not reread 3 places for evidence: Torch.add.0.forward: a.pt: "
                         "Input/output error") != std::string::npos);
  ranks[0].findings.push_back(found_at("Functional.gelu.9.forward", 30));
  const std::string told = block(conclude(ranks));
  CHECK(told.starts_with("culprit"));
  CHECK(told.find("\n   unread   could not reread 3 places for evidence: Torch.add.0.forward: a.pt: "
                  "Input/output error\n") != std::string::npos);
  ranks[1].broken_off = ranks[2].broken_off = 0;
  CHECK(block(conclude(ranks)).find("unread") == std::string::npos);
}

TEST_CASE("what came in by communication is introduced where it was sent from") {
  std::vector<RankFindings> ranks;
  ranks.push_back(rank_of(0, {found_at("Functional.gelu.9.forward", 30)}));
  ranks.back().communication.push_back(all_reduce(20, 1e-7, 1e-2));
  ranks.push_back(rank_of(1, {found_at("Functional.linear.3.forward", 15)}));
  ranks.back().communication.push_back(all_reduce(20, 1e-2, 1e-2));
  const Diagnosis diagnosis = conclude(ranks);
  REQUIRE(diagnosis.independent == 1);
  CHECK(diagnosis.culprit().entry == "Functional.linear.3.forward");
  CHECK(diagnosis.culprit().rank == "rank1");
}

TEST_CASE("an exchange that left more than anyone gave") {
  std::vector<RankFindings> ranks;
  for (std::int64_t number = 0; number < 2; ++number) {
    ranks.push_back(rank_of(number, {}));
    ranks.back().communication.push_back(all_reduce(20, 1e-7, 1e-2));
  }
  const Diagnosis diagnosis = conclude(ranks);
  REQUIRE(diagnosis.independent == 1);
  CHECK(diagnosis.culprit().kind == Kind::communication);
  CHECK(diagnosis.culprit().other_ranks == std::vector<std::string>{"rank1"});
  CHECK(diagnosis.culprit().text.find("the contributions of all ranks at most 1.0e-07") != std::string::npos);
}

TEST_CASE("an exchange that earlier evidence may have reached is no second fault") {
  std::vector<RankFindings> ranks;
  for (std::int64_t number = 0; number < 2; ++number) {
    ranks.push_back(rank_of(number, {found_at("Functional.gelu.9.forward", 10)}));
    ranks.back().communication.push_back(all_reduce(20, 1e-7, 1e-2));
    ranks.back().communication.back().follows = true;
  }
  CHECK(conclude(ranks).independent == 1);
  for (RankFindings& rank : ranks) rank.communication.back().follows = false;
  CHECK(conclude(ranks).independent == 2);
}

TEST_CASE("two differences at one place count a rank once each") {
  std::vector<RankFindings> ranks;
  for (std::int64_t number = 0; number < 2; ++number) {
    Finding rate = found_at("optimizer", 30);
    Finding decay = rate;
    decay.text = "SGD: weight_decay is 0.1, golden 0";
    ranks.push_back(rank_of(number, {rate, decay}));
  }
  const Diagnosis diagnosis = conclude(ranks);
  REQUIRE(diagnosis.independent == 2);
  for (std::size_t i = 0; i < 2; ++i)
    CHECK(diagnosis.findings[i].other_ranks == std::vector<std::string>{"rank1"});
}

TEST_CASE("one rank alone does not show what others sent") {
  std::vector<RankFindings> ranks;
  ranks.push_back(rank_of(0, {}));
  ranks.back().communication.push_back(all_reduce(20, 1e-7, 1e-2));
  const Diagnosis diagnosis = conclude(ranks);
  REQUIRE(diagnosis.independent == 1);
  CHECK(diagnosis.culprit().kind == Kind::communication);
  CHECK(diagnosis.culprit().side.empty());
}

TEST_CASE("what a rank that stopped would have given explains what came to others") {
  std::vector<RankFindings> ranks;
  ranks.push_back(rank_of(0, {found_at("Functional.gelu.9.forward", 10, Confidence::certain)}));
  ranks.back().communication.push_back(all_reduce(20, 1e-7, 0));
  ranks.push_back(rank_of(1, {}));
  ranks.back().communication.push_back(all_reduce(15, 1e-7, 1e-2));
  ranks.push_back(rank_of(1, {}, "step1"));
  ranks.back().communication.push_back(all_reduce(15, 1e-7, 1e-2));
  CHECK(conclude(ranks).findings.size() == 3);  // as if rank 0 had been read, and nothing given by it
  ranks[0].communication[0].e_in = measuring::kInfinite;
  ranks[0].stopped = true;
  ranks[0].left_out = 12;
  const Diagnosis diagnosis = conclude(ranks);
  REQUIRE(diagnosis.findings.size() == 1);
  CHECK(diagnosis.culprit().rank == "rank0");
  CHECK(diagnosis.doubt.empty());
  CHECK(block(diagnosis).find("\n   left out 12 entries after certain evidence, because of --first\n") !=
        std::string::npos);
}

TEST_CASE("one fault of all ranks is one line") {
  const std::vector<RankFindings> ranks = {rank_of(0, {found_at("Functional.gelu.0.forward", 3)}),
                                           rank_of(1, {found_at("Functional.gelu.0.forward", 3)})};
  const Diagnosis diagnosis = conclude(ranks);
  CHECK(diagnosis.independent == 1);
  CHECK(diagnosis.culprit().other_ranks == std::vector<std::string>{"rank1"});
  CHECK(block(diagnosis).find(", rank 0, 1 ") != std::string::npos);
}

TEST_CASE("the second line is no consequence of the first") {
  Finding downstream = found_at("Functional.linear.1.forward", 4);
  downstream.downstream = true;
  const std::vector<RankFindings> ranks = {
      rank_of(0, {found_at("Functional.linear.0.forward", 3), downstream,
                  found_at("Functional.relu.0.forward", 9),
                  found_at("Functional.tanh.0.forward", 1, Confidence::hint)}),
      rank_of(0, {found_at("Functional.linear.0.forward", 3)}, "step1")};
  const Diagnosis diagnosis = conclude(ranks);
  REQUIRE(diagnosis.independent == 2);
  CHECK(diagnosis.culprit().entry == "Functional.linear.0.forward");
  REQUIRE(diagnosis.second() != nullptr);
  CHECK(diagnosis.second()->entry == "Functional.relu.0.forward");
  CHECK(diagnosis.findings.size() == 5);
  CHECK(diagnosis.findings.back().confidence == Confidence::hint);
}

TEST_CASE("structural differences of one module are one line") {
  Finding one = found_at("Functional.silu.0.forward", 3);
  one.rule = Rule::structure;
  one.module = "layers.1.mlp";
  Finding other = found_at("Torch.mul.0.forward", 5);
  other.rule = Rule::structure;
  other.module = "layers.1.mlp";
  const Diagnosis diagnosis = conclude({rank_of(0, {one, other})});
  CHECK(diagnosis.independent == 1);
  CHECK(diagnosis.culprit().concerned == 2);
}

TEST_CASE("the block on the terminal") {
  Finding finding = found_at("Functional.interpolate.1.forward", 3, Confidence::certain);
  finding.kind = Kind::argument;
  finding.golden_entry = "Functional.interpolate.0.forward";
  finding.module = "decoder.up2";
  finding.text = "argument mode is 'bilinear', golden 'nearest'";
  finding.side = "the code differs, not a kernel";
  finding.where = "/home/me/model.py, line 94, in forward: x = self.up(x, mode=self.mode)";
  finding.next = "set mode";
  RankFindings rank = rank_of(0, {finding});
  rank.counts[static_cast<std::size_t>(Origin::propagated)] = 1214;
  rank.agreeing = 118;
  rank.rounded = 3;
  rank.largest_excess = 8.8;  // behind the culprit
  rank.largest_before = 1.44;
  rank.propagated_largest = 0.33;
  rank.propagated_entry = "Module.out.Conv2d.forward.0";
  CHECK(
      block(conclude({rank})) ==
      "culprit: decoder.up2 > Functional.interpolate.1.forward, step 0, rank 0   certain\n"
      "   argument mode is 'bilinear', golden 'nearest'\n"
      "   the code differs, not a kernel\n"
      "   /home/me/model.py:94   x = self.up(x, mode=self.mode)\n"
      "   golden   Functional.interpolate.0.forward\n"
      "   before   118 entries agree within rounding (errors at most 1.4 times what is explained; 10 would "
      "be evidence)\n"
      "   after    1,214 of 1,214 rows carry the error, the largest 3.3e-01 at Module.out.Conv2d.forward.0\n"
      "   next     set mode\n");
}

TEST_CASE("what is ahead of the culprit agrees, or is equal") {
  RankFindings rank = rank_of(0, {found_at("Functional.gelu.9.forward", 30)});
  rank.agreeing = 17;
  rank.largest_excess = 8.9;
  CHECK(block(conclude({rank})).find("   before   17 entries are equal\n") != std::string::npos);
  rank.agreeing = 1;
  CHECK(block(conclude({rank})).find("   before   1 entry is equal\n") != std::string::npos);
  rank.rounded = 1;
  rank.largest_before = 0.5;
  CHECK(
      block(conclude({rank}))
          .find("   before   1 entry agrees within rounding (errors at most 0.5 times what is explained; 10 "
                "would be evidence)\n") != std::string::npos);
}

TEST_CASE(
    "calls that get the same argument, and tensors that could not be read, are reported with the culprit") {
  Finding finding = found_at("Tensor.addcmul_.0.forward", 30, Confidence::certain);
  finding.kind = Kind::argument;
  finding.repeated = 51;
  RankFindings rank = rank_of(0, {finding});
  CHECK(block(conclude({rank})).find(" (51 more calls get the same argument)\n") != std::string::npos);
  CHECK(block(conclude({rank})).find("unread") == std::string::npos);
  rank.findings[0].repeated = 1;
  rank.unread = 1;
  const std::string text = block(conclude({rank}));
  CHECK(text.find(" (1 more call gets the same argument)\n") != std::string::npos);
  CHECK(text.find("\n   unread   could not read the tensors of 1 row and used their statistics instead\n") !=
        std::string::npos);
}

TEST_CASE("a reduction over ranks that one run alone makes is said") {
  const auto rank = [](int number, double ours, double theirs) {
    Finding finding = found_at("optimizer", 30, Confidence::certain);
    finding.kind = Kind::optimizer;
    finding.rule = Rule::structure;
    finding.place = std::string(kGradients);
    finding.text = "between backward and optimizer";
    RankFindings found = rank_of(number, {finding});
    found.changed_gradients = {{"a.bias", {ours, theirs}}, {"a.weight", {3 * ours, 2 * theirs}}};
    found.one_factor = {ours < 3, theirs < 7};
    return found;
  };
  const auto text = [](const Diagnosis& diagnosis) { return diagnosis.findings.front().text; };
  CHECK(text(conclude({rank(0, 1, 5), rank(1, 2, 5)})) ==
        "between backward and optimizer; the ranks of golden take the same, those of this run each their "
        "own: nothing reduces them there after the last backward");
  CHECK(text(conclude({rank(0, 1, 5), rank(1, 1, 6)}))
            .find("; the ranks of this run take the same, those of golden each their own: nothing") !=
        std::string::npos);
  // A rank may change what was reduced; some ranks may be reduced, but not all.
  CHECK(text(conclude({rank(0, 1, 5), rank(1, 4, 5)})) == "between backward and optimizer");
  CHECK(text(conclude({rank(0, 1, 5), rank(1, 2, 5), rank(2, 2, 5)})) == "between backward and optimizer");
  CHECK(text(conclude({rank(0, 1, 5), rank(1, 1, 5)})) == "between backward and optimizer");
  CHECK(text(conclude({rank(0, 1, 5)})) == "between backward and optimizer");
}

TEST_CASE("a rank that shows the culprit beside its consequences is named") {
  const auto rank = [](int number) {
    Finding finding = found_at("optimizer", 30, Confidence::certain);
    finding.kind = Kind::optimizer;
    finding.downstream = true;
    return rank_of(number, {finding});
  };
  const Diagnosis diagnosis = conclude({rank(0), rank(1)});
  CHECK(diagnosis.culprit().other_ranks.size() == 1);
  CHECK(diagnosis.independent == 1);
}

TEST_CASE("one cause in several layers, or on one line, is one") {
  const auto in_layer = [](int layer) {
    const std::string path = "layers." + std::to_string(layer) + ".act";
    Finding finding = found_at("Module." + path + ".GELU.forward.0", 30 + layer, Confidence::certain);
    finding.module = path;
    finding.kind = Kind::exchanged;
    return finding;
  };
  const Diagnosis layers = conclude({rank_of(0, {in_layer(0), in_layer(1), in_layer(2)})});
  CHECK(layers.independent == 1);
  CHECK(block(layers).find(" (2 more places show the same)\n") != std::string::npos);
  Finding other = in_layer(1);
  other.place = "input.1";
  CHECK(conclude({rank_of(0, {in_layer(0), other})}).independent == 2);
  const auto on_line = [](int number, const char* line) {
    Finding finding =
        found_at("Tensor.div_." + std::to_string(number) + ".forward", 30 + number, Confidence::certain);
    finding.where = line;
    return finding;
  };
  CHECK(
      conclude({rank_of(0, {on_line(0, "train.py, line 3"), on_line(1, "train.py, line 3")})}).independent ==
      1);
  CHECK(
      conclude({rank_of(0, {on_line(0, "train.py, line 3"), on_line(1, "train.py, line 9")})}).independent ==
      2);
}

TEST_CASE("what different rules see of one line is one cause") {
  const auto of_line = [](int number, Rule rule, Kind kind) {
    Finding finding = found_at("Functional.dropout." + std::to_string(number) + ".forward", 30 + number,
                               Confidence::likely);
    finding.rule = rule;
    finding.kind = kind;
    finding.where = "model.py, line 3";
    return finding;
  };
  const Finding random = of_line(2, Rule::introduced, Kind::random);
  CHECK(conclude({rank_of(0, {random, of_line(3, Rule::gain, Kind::gain)})}).independent == 1);
  CHECK(conclude({rank_of(0, {random, of_line(3, Rule::source, Kind::data)})}).independent == 2);
}

TEST_CASE("a module that is a number is said to be one, and a hint says so once") {
  Finding finding = found_at("Functional.gelu.0.forward", 3, Confidence::certain);
  finding.kind = Kind::argument;
  finding.place = "input.approximate";
  finding.module = "1";
  finding.next = advice(finding, true);
  const std::string text = block(conclude({rank_of(0, {finding})}));
  CHECK(text.starts_with("culprit: module 1 > Functional.gelu.0.forward, step 0, rank 0   certain\n"));
  CHECK(text.find("   next     set input.approximate in module 1 to golden's value;") != std::string::npos);
  finding.module = "layers.1";
  CHECK(block(conclude({rank_of(0, {finding})}))
            .find("culprit: layers.1 > Functional.gelu.0.forward, step 0") != std::string::npos);
  finding.confidence = Confidence::hint;
  RankFindings rank = rank_of(0, {finding});
  rank.counts[0] = rank.coverage.compared = 5;
  CHECK(block(conclude({rank})).find("\nhint: layers.1 > Functional.gelu.0.forward, step 0, rank 0\n") !=
        std::string::npos);
}

TEST_CASE("what golden alone runs is looked for at its line, if there is one") {
  Finding finding = found_at("Torch.norm.0.forward", 3, Confidence::certain);
  finding.kind = Kind::removed;
  CHECK(advice(finding, false) == "compare the code there on both sides");
  finding.where = "in golden: train.py, line 3";
  CHECK(advice(finding, false) == "compare the code there on both sides, starting at the line of the call");
}

TEST_CASE("the answer line by line") {
  Finding second = found_at("Functional.gelu.9.forward", 9);
  second.kind = Kind::removed;
  const std::vector<Line> lines =
      answer(conclude({rank_of(0, {found_at("Torch.a\n.0.forward", 3), second})}));
  REQUIRE(lines.size() == 4);
  CHECK(lines[0].heads);
  CHECK(lines[0].name == "culprit");
  CHECK(lines[0].text == "Torch.a\n.0.forward, step 0, rank 0");  // as it is: who shows it escapes it
  CHECK(lines[0].confidence == "likely");
  CHECK_FALSE(lines[1].heads);
  CHECK(lines[1].name == "why");
  CHECK(lines[2].name == "also");
  CHECK(lines[2].heads);
  CHECK(lines[2].text == "Functional.gelu.9.forward (golden), step 0, rank 0");
}

TEST_CASE("no culprit") {
  RankFindings rank = rank_of(0, {});
  CHECK(block(conclude({rank})) == "no culprit: there are no tensors to compare\n");
  CHECK(block(conclude({})) == "no culprit: there are no tensors to compare\n");
  rank.counts[static_cast<std::size_t>(Origin::equal)] = 7;
  CHECK(block(conclude({rank})) == "no culprit: there are no tensors to compare\n");  // but arguments
  rank.coverage.compared = 7;
  CHECK(block(conclude({rank})) == "no culprit: all 7 rows that could be compared are equal\n");
  rank.counts[static_cast<std::size_t>(Origin::rounding)] = 2384;
  rank.largest_excess = 1.6;
  rank.largest_entry = "Functional.linear.0.forward";
  rank.visible = 2e-6;
  rank.visible_module = "decoder";
  CHECK(block(conclude({rank})) ==
        "no culprit: 2,384 rows differ by rounding only\n"
        "   closest to evidence: Functional.linear.0.forward, 1.6 times what is explained (10 would be "
        "evidence)\n   errors above 2.0e-06 would have been detected "
        "everywhere (smaller ones, too, outside decoder)\n");
}

TEST_CASE("not clear") {
  Finding found = found_at("Module.gate.Gate.forward.0", 3);
  found.kind = Kind::unexplained;
  found.confidence = Confidence::hint;
  found.text = "output.0 has error 2.2e+00, all that was judged before it at most 1.0e-07";
  Finding hint = found_at("Functional.linear.0.forward", 1);
  hint.confidence = Confidence::hint;
  RankFindings rank = rank_of(0, {hint, found});
  rank.coverage.compared = 9;
  rank.counts[static_cast<std::size_t>(Origin::rounding)] = 7;
  rank.counts[static_cast<std::size_t>(Origin::unexplained)] = 2;
  const std::string text = block(conclude({rank}));
  CHECK(text.starts_with(
      "not clear: 2 rows differ by more than rounding explains, and no rule could judge them\n"
      "first: Module.gate.Gate.forward.0"));
  CHECK(to_json(conclude({rank})).front().starts_with(R"({"kind": "not_clear")"));

  // If a culprit follows them, the answer prints them beside it.
  rank = rank_of(0, {found_at("Functional.linear.5.forward", 11), found});
  rank.counts[static_cast<std::size_t>(Origin::unexplained)] = 1;
  const std::string beside = block(conclude({rank}));
  CHECK(beside.starts_with("culprit: Functional.linear.5.forward"));
  CHECK(beside.find(
            "   unclear  1 row before it differs by more than rounding explains, and no rule could judge it: "
            "first Module.gate.Gate.forward.0\n") != std::string::npos);
}

TEST_CASE("hostile names stay on their line") {
  const std::string text = block(conclude({rank_of(0, {found_at("Torch.\x1b[31m\nx.0.forward", 1)})}));
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(text.find("culprit") == 0);
  CHECK(text.find("\nx") == std::string::npos);
}

TEST_CASE("a finding as JSON") {
  Finding finding = found_at("Functional.linear.0.forward", 1);
  finding.place = "output.0";
  const auto json = nlohmann::json::parse(to_json(finding));
  CHECK(json["kind"] == "introduced");
  CHECK(json["entry"] == "Functional.linear.0.forward");
  CHECK(json["place"] == "output.0");
  CHECK(json["excess"] == 50.0);
  CHECK(json["confidence"] == "likely");
  finding.excess = std::numeric_limits<double>::infinity();
  CHECK(nlohmann::json::parse(to_json(finding))["excess"].is_null());
  CHECK(to_json(finding).find('\n') == std::string::npos);
}

TEST_CASE("the cell of an entry") {
  CHECK(evidence_cell(nullptr).empty());
  const Finding finding = found_at("Functional.linear.0.forward", 1);
  CHECK(evidence_cell(&finding) == "50.0 times what is explained: output error 1.0e-02 from inputs 1.0e-07");
}

}  // namespace msprobe::diagnosis::conclusion_test
