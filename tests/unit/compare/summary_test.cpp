// SPDX-License-Identifier: Apache-2.0
#include "compare/sinks/summary.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "compare/sinks/summary_text.hpp"
#include "support/error.hpp"
#include "unit/compare/dumps.hpp"

namespace msprobe::compare_summary_test {

using namespace msprobe;
using namespace msprobe::compare;
using measuring::Mode;
using verdict::RankResult;

namespace {

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// Forward entries Torch.e<i>.0.forward whose output is `values[i]`, the input always 1.
std::string entries(const std::vector<std::string>& values) {
  std::string out;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += ",";
    out +=
        forward_json("Torch.e" + std::to_string(i) + ".0.forward", tensor_json("1"), tensor_json(values[i]));
  }
  return out;
}

const SummaryOptions kDetails{.top = kWorstRows, .by = {}, .details = true};

std::string render(TaskSummary summary) {
  summary.target = "t/dump.json";
  summary.golden = "g/dump.json";
  CompareReport report;
  report.tasks.push_back(std::move(summary));
  return render_summary(report, kDetails, {});
}

}  // namespace

TEST_CASE("counts of rows by verdict and kind") {
  const TaskSummary summary = summarize(
      judged_rows(entries({"1", "1.2", "3", "1"}),
                  entries({"1", "1", "1"}) + "," + forward_json("Torch.z.0.forward", tensor_json("1"), ""),
                  Mode::statistics, false));
  CHECK(summary.rows == 8);
  CHECK(summary.errors == 1);
  CHECK(summary.warnings == 3);  // one rule, two rows without partner
  CHECK(summary.unmatched == 2);
  CHECK(summary.golden_only == 1);
  CHECK(summary.unreadable == 0);
  REQUIRE(summary.first_bad.has_value());
  CHECK(summary.first_bad->name == "Torch.e2.0.forward.output.0");
  CHECK(summary.first_bad->verdict == verdict::Verdict::error);
  REQUIRE(summary.worst.size() == 4);
  CHECK(summary.worst[0].name == "Torch.e2.0.forward.output.0");
  const std::string text = render(summary);
  CHECK(contains(text, "t/dump.json against g/dump.json (statistics)"));
  CHECK(contains(text, "8 rows: 1 error, 3 warning, 4 pass; 2 unmatched; 1 only in golden"));
  CHECK(contains(text, "Torch.e2.0.forward.output.0"));
  CHECK(contains(text, "NormRelativeErr of output is greater than 0.5"));
  CHECK(contains(text, "200%"));
}

TEST_CASE("without an error the summary has the first warning, without either nothing") {
  const TaskSummary warning =
      summarize(judged_rows(entries({"1", "1.2"}), entries({"1", "1"}), Mode::statistics, false));
  REQUIRE(warning.first_bad.has_value());
  CHECK(warning.first_bad->name == "Torch.e1.0.forward.output.0");
  const TaskSummary clean = summarize(judged_rows(entries({"1"}), entries({"1"}), Mode::statistics, false));
  CHECK_FALSE(clean.first_bad.has_value());
  CHECK(clean.worst.empty());
  CHECK(contains(render(clean), "2 rows: 0 error, 0 warning, 2 pass"));
}

TEST_CASE("the worst ten, worst first, however many there are") {
  std::vector<std::string> target;
  std::vector<std::string> golden;
  for (int i = 0; i < 3000; ++i) {
    target.push_back(std::to_string(2 + (i * 7919) % 3000));  // each number once
    golden.push_back("1");
  }
  const TaskSummary summary =
      summarize(judged_rows(entries(target), entries(golden), Mode::statistics, false));
  CHECK(summary.errors == 3000);
  REQUIRE(summary.worst.size() == 10);
  for (std::size_t i = 0; i < 10; ++i) CHECK(summary.worst[i].weight == 3000.0 - static_cast<double>(i));
  CHECK(summary.first_bad->name == "Torch.e0.0.forward.output.0");
}

TEST_CASE("the worst rows by a metric of choice") {
  // The second differs most in absolute terms, the third in relative ones; both pass the rules.
  const RankResult result = judged(entries({"1", "1010", "1.05", "NaN"}), entries({"1", "1000", "1", "NaN"}),
                                   Mode::statistics, false);
  const TaskSummary by_difference = summarize(RankRows::of(result), {.top = 1, .by = "max DIFF"});
  CHECK(by_difference.worst_by == "Max diff");
  REQUIRE(by_difference.worst.size() == 1);
  CHECK(by_difference.worst[0].name == "Torch.e1.0.forward.output.0");
  CHECK(by_difference.worst[0].measure == "10");
  const TaskSummary by_error = summarize(RankRows::of(result), {.top = 5, .by = "NormRelativeErr"});
  REQUIRE(by_error.worst.size() == 2);  // rows that are equal are not among the worst
  CHECK(by_error.worst[0].name == "Torch.e2.0.forward.output.0");
  CHECK(render(by_error).find("worst 2 by NormRelativeErr:") != std::string::npos);
  CHECK(summarize(RankRows::of(result), {.top = 0, .by = ""}).worst.empty());
}

TEST_CASE("a metric that the comparison does not have is named with those it has") {
  const RankResult result = judged(entries({"1"}), entries({"1"}), Mode::statistics, false);
  CHECK_THROWS_WITH_AS(summarize(RankRows::of(result), {.top = 1, .by = "Cosine"}),
                       doctest::Contains("Max diff, Min diff, Mean diff, L2norm diff, MaxRelativeErr"),
                       UsageError);
  const RankResult checksums = judged(entries({"1"}), entries({"1"}), Mode::md5, false);
  CHECK_THROWS_AS(summarize(RankRows::of(checksums), {.top = 1, .by = "Cosine"}), UsageError);
}

TEST_CASE("tensors that could not be compared are counted") {
  RankResult result = matched(entries({"1"}), entries({"1"}), Mode::tensor, false);
  result.metrics[0].failed = true;
  result.metrics[0].messages = {"Dump file: a or b not found or read failed."};
  result.judgement.findings[0].add(verdict::RowRule::not_measured);
  const TaskSummary summary = summarize(RankRows::of(result));
  CHECK(summary.unreadable == 1);
  CHECK(contains(render(summary), "1 not comparable"));
}

TEST_CASE("failures, sides that lack a rank, and nothing to compare") {
  CompareReport report;
  report.tasks.resize(2);
  report.tasks[0].label = "rank0";
  report.tasks[0].failure = "t/rank0/dump.json: the file is empty (byte 0)";
  report.tasks[1].label = "rank1";
  report.one_sided = {"rank2: only in target"};
  const std::string text = render_summary(report, {}, {});
  CHECK(contains(text, "failed: 1 of 2 comparisons\n"));  // why is an error message
  CHECK(contains(render_summary(report, kDetails, {}),
                 "rank0  failed: t/rank0/dump.json: the file is empty (byte 0)\n"));
  CHECK(contains(text, "no rows: the target has nothing to compare"));
  CHECK(contains(text, "not compared: rank2: only in target"));
}

TEST_CASE("all comparisons together: counts, what holds of several once, the files") {
  CompareReport report;
  const TaskSummary one =
      summarize(judged_rows(entries({"1", "1.2", "3"}), entries({"1", "1", "1"}), Mode::statistics, false));
  for (int rank = 0; rank < 6; ++rank) {
    TaskSummary& task = report.tasks.emplace_back(one);
    task.label = "rank" + std::to_string(rank);
    task.advice = "golden has other names";
    task.files = {"out/" + task.label + ".csv"};
    report.one_sided.push_back(task.label + "0: only in target");
  }
  const std::string text = render_summary(report, {}, {});
  CHECK(text ==
        "36 rows: 6 error, 6 warning, 24 pass (--details lists the worst)\n"
        "rank0\n"
        "  first in execution order: Torch.e2.0.forward.output.0\n"
        "    error: " +
            one.first_bad->reason + " (" + one.first_bad->measure +
            ")\n"
            "rank0 and 5 more  unmatched: golden has other names\n"
            "written: out/rank0.csv\n"
            "written: 5 more files\n"
            "not compared: rank00: only in target\n"
            "not compared: rank10: only in target\n"
            "not compared: rank20: only in target\n"
            "not compared: rank30: only in target\n"
            "not compared: 2 more (--details lists them)\n");
}

TEST_CASE("the answer keeps to the width of a terminal and breaks no word") {
  diagnosis::Diagnosis diagnosis;
  diagnosis::Finding& finding = diagnosis.findings.emplace_back();
  finding.confidence = diagnosis::Confidence::certain;
  finding.entry = finding.golden_entry = "Functional.scaled_dot_product_attention.16.forward";
  finding.module = "blocks.2.attn";
  finding.step = "step0";
  finding.rank = "rank3";
  finding.text = "argument is_causal is False, True in golden, and this goes on beyond the end of the line";
  finding.where =
      "lab/gpt.py, line 12, in forward: return functional.scaled_dot_product_attention(q, k, v, self.mask)";
  diagnosis.independent = 1;
  diagnosis.coverage.compared = 1;
  const std::string text = answer_text(diagnosis, {.width = 80, .color = false, .links = false});
  CHECK(text ==
        "culprit: blocks.2.attn > Functional.scaled_dot_product_attention.16.forward,\n"
        "   step 0, rank 3                                                        certain\n"
        "   argument is_causal is False, True in golden, and this goes on beyond the end\n"
        "   of the line\n"
        "   lab/gpt.py:12\n"
        "      return functional.scaled_dot_product_attention(q, k, v, self.mask)\n");
}

TEST_CASE("that there is no culprit is green only where all was judged") {
  diagnosis::Diagnosis diagnosis;
  CHECK(contains(answer_text(diagnosis, {.color = true}), "\x1b[33mno culprit:"));
  diagnosis.coverage.compared = 1;
  diagnosis.counts[static_cast<std::size_t>(diagnosis::Origin::equal)] = 1;
  CHECK(contains(answer_text(diagnosis, {.color = true}), "\x1b[32mno culprit:"));
  diagnosis.unread = 1;
  CHECK(contains(answer_text(diagnosis, {.color = true}), "\x1b[33mno culprit:"));
}

TEST_CASE("names from a dump cannot drive the terminal") {
  const std::string members =
      forward_json("Torch.\\u001b[31m\\n.0.forward", tensor_json("1"), tensor_json("5"));
  const std::string golden =
      forward_json("Torch.\\u001b[31m\\n.0.forward", tensor_json("1"), tensor_json("1"));
  TaskSummary summary = summarize(judged_rows(members, golden, Mode::statistics, false));
  summary.files = {"out/\x1b[2J.csv"};
  summary.label = "\x1b[2J";
  const std::string text = render(summary);
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(contains(text, "[31m"));
}

TEST_CASE("colour only where it is wanted") {
  CompareReport report;
  report.tasks.push_back(summarize(judged_rows(entries({"3"}), entries({"1"}), Mode::statistics, false)));
  CHECK(render_summary(report, kDetails, {}).find('\x1b') == std::string::npos);
  CHECK(render_summary(report, kDetails, {.color = true}).find('\x1b') != std::string::npos);
}

}  // namespace msprobe::compare_summary_test
