// SPDX-License-Identifier: Apache-2.0
// JUnit XML has no standard. This is the form that Jenkins accepts (schema:
// src/main/resources/org/jenkinsci/plugins/xunit/types/model/xsd/junit-10.xsd of jenkinsci/xunit-plugin).
// GitLab reads a part of it (https://docs.gitlab.com/ci/testing/unit_test_reports/).
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compare/sinks/answer_text.hpp"
#include "compare/sinks/judgement.hpp"
#include "compare/sinks/texts.hpp"
#include "diagnosis/sentences.hpp"
#include "report/xml_text.hpp"
#include "support/text.hpp"
#include "support/version.hpp"

namespace msprobe::compare {
namespace {

using diagnosis::Finding;

struct Problem {
  std::string_view kind;  // failure, error, skipped
  std::string message;
  std::string text;  // more, safe to show; may be empty
};

struct TestCase {
  std::string name;
  std::optional<Problem> problem = {};  // at most one, because not every reader accepts more
};

struct Suite {
  std::string name;
  std::vector<std::pair<std::string, std::string>> properties;
  std::vector<TestCase> cases;

  std::size_t count(std::string_view kind) const {
    return static_cast<std::size_t>(std::ranges::count_if(
        cases, [&](const TestCase& one) { return one.problem && one.problem->kind == kind; }));
  }
};

std::string attribute(std::string_view name, std::string_view value) {
  std::string out = " " + std::string(name) + "=\"";
  report::append_xml_text(out, display(value));
  return out + '"';
}

void append_case(std::string& out, const Suite& suite, const TestCase& one) {
  out += "    <testcase" + attribute("classname", "msprobe." + suite.name) + attribute("name", one.name);
  if (!one.problem) {
    out += "/>\n";
    return;
  }
  out += ">\n";
  out += "      <" + std::string(one.problem->kind) + attribute("message", one.problem->message) + ">";
  report::append_xml_text(out, one.problem->text);
  out += "</" + std::string(one.problem->kind) + ">\n";
  out += "    </testcase>\n";
}

void append_suite(std::string& out, const Suite& suite) {
  out += "  <testsuite" + attribute("name", suite.name) +
         fmt::format(" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">\n", suite.cases.size(),
                     suite.count("failure"), suite.count("error"), suite.count("skipped"));
  out += "    <properties>\n";
  for (const auto& [name, value] : suite.properties)
    out += "      <property" + attribute("name", name) + attribute("value", value) + "/>\n";
  out += "    </properties>\n";
  for (const TestCase& one : suite.cases) append_case(out, suite, one);
  out += "  </testsuite>\n";
}

/// The culprit with the whole answer; another fault with its sentence only.
Problem failure_of(const diagnosis::Diagnosis& diagnosis, std::size_t index) {
  const Finding& finding = diagnosis.findings[index];
  const std::string message =
      fmt::format("{} ({}): {}", diagnosis::headline_of(finding), diagnosis::name_of(finding.confidence),
                  diagnosis::sentence(finding));
  return {"failure", message, index == 0 ? answer_text(diagnosis) : display(finding.next)};
}

Suite suite_of(const TaskSummary& task) {
  Suite suite{task.label.empty() ? "dump" : task.label, {}, {{"compared"}, {"culprit"}}};
  const auto add = [&](const char* name, std::uint64_t count) {
    suite.properties.emplace_back(name, std::to_string(count));
  };
  suite.properties.emplace_back("target", task.target);
  suite.properties.emplace_back("golden", task.golden);
  if (!task.failure.empty() || task.left_out) return suite;
  add("rows", task.rows);
  add("error", task.errors);
  add("warning", task.warnings);
  add("pass", task.passed());
  add("not compared", task.unknown);
  add("unreadable", task.unreadable);
  add("left out", task.rows_left_out);
  add("unmatched", task.unmatched);
  add("only in golden", task.golden_only);
  return suite;
}

/// If there are several faults, the first one is the message.
void add_failure(TestCase& where, const Problem& failure) {
  if (where.problem && where.problem->kind == failure.kind) {
    where.problem->text += "\n" + display(failure.message) + "\n";
  } else {
    where.problem = failure;
  }
}

/// Adds a finding to the case in the suite of its task, or to the suite of the whole if it fits no task.
/// Other ranks with the same finding do not fail again.
void add_finding(const CompareReport& report, std::size_t index, std::vector<Suite>& suites) {
  const Finding& finding = report.diagnosis->findings[index];
  const Problem failure = failure_of(*report.diagnosis, index);
  bool placed = false;
  for (std::size_t i = 0; i < report.tasks.size(); ++i) {
    const TaskSummary& task = report.tasks[i];
    TestCase& culprit = suites[i + 1].cases[1];
    if (task.step != finding.step) continue;
    if (task.rank == finding.rank && !placed) {
      add_failure(culprit, failure);
      placed = true;
    } else if (!culprit.problem &&
               std::ranges::find(finding.other_ranks, task.rank) != finding.other_ranks.end()) {
      culprit.problem = {"skipped", "shows the same as " + finding.rank, ""};
    }
  }
  if (placed) return;
  std::vector<TestCase>& cases = suites.front().cases;
  if (cases.back().name != "culprit") cases.push_back({"culprit"});
  add_failure(cases.back(), failure);
}

}  // namespace

std::string junit_text(const CompareReport& report) {
  std::vector<Suite> suites;
  suites.push_back({"compare", {{"msprobe", kVersion}}, {{"judged"}, {"ranks"}}});
  for (const TaskSummary& task : report.tasks) suites.push_back(suite_of(task));
  const bool has_culprit = report.diagnosis && report.diagnosis->has_culprit();
  const bool judged = is_judged(report);
  if (has_culprit) {
    for (std::size_t i = 0; i < report.diagnosis->independent; ++i) add_finding(report, i, suites);
  } else if (!judged) {
    suites.front().cases[0].problem = {"failure", judgement_of(report).sentence(),
                                       report.diagnosis ? answer_text(*report.diagnosis) : ""};
  }
  if (!report.one_sided.empty()) {
    std::string lines;
    for (const std::string& line : report.one_sided) lines += display(line) + "\n";
    suites.front().cases[1].problem = {"failure", report.one_sided.front(), lines};
  }
  for (std::size_t i = 0; i < report.tasks.size(); ++i) {
    const TaskSummary& task = report.tasks[i];
    TestCase& compared = suites[i + 1].cases[0];
    TestCase& culprit = suites[i + 1].cases[1];
    if (!task.failure.empty()) compared.problem = {"error", task.failure, ""};
    if (task.left_out)
      compared.problem = {"skipped", "left out: an earlier step of this rank has certain evidence", ""};
    // A case that was not judged has not passed.
    if (!culprit.problem && (compared.problem || (!judged && !has_culprit)))
      culprit.problem = {"skipped", "not judged", ""};
  }
  std::string out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"msprobe\">\n";
  for (const Suite& suite : suites) append_suite(out, suite);
  return out + "</testsuites>\n";
}

}  // namespace msprobe::compare
