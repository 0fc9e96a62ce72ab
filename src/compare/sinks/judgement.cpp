// SPDX-License-Identifier: Apache-2.0
#include "compare/sinks/judgement.hpp"

#include <algorithm>

#include "support/text.hpp"

namespace msprobe::compare {
namespace {

/// `unmatched` also counts entries that one side alone has.
bool found_bad_rows(const CompareReport& report, std::string_view level) {
  bool findings = level == "unmatched" && !report.one_sided.empty();
  for (const TaskSummary& rank : report.tasks) {
    // --first leaves out only rows that follow certain evidence.
    findings = findings || rank.errors > 0 || rank.left_out || rank.rows_left_out > 0;
    if (level == "warning") findings = findings || rank.warnings > 0;
    if (level == "unmatched") findings = findings || rank.unmatched > 0 || rank.golden_only > 0;
  }
  return findings;
}

/// True if the mapping file names nothing of any target.
bool is_mapping_idle(const CompareReport& report) {
  if (report.mapping_file.empty()) return false;
  bool any = false;
  for (const TaskSummary& task : report.tasks) {
    if (task.rows == 0) continue;
    if (task.mapping_applies) return false;
    any = true;
  }
  return any;
}

void note_broken_off(const diagnosis::Diagnosis& diagnosis, std::vector<std::string>& lines) {
  if (diagnosis.broken_off == 0) return;
  lines.push_back("places that could not be read again: " + human_count(diagnosis.broken_off) +
                  ", the first " + display(diagnosis.first_broken_off));
}

/// Lists the parts that the diagnosis had to leave out.
void note_diagnosis(const CompareReport& report, std::vector<std::string>& lines) {
  if (!report.diagnosis) {
    lines.emplace_back("these results have no diagnosis");
    return;
  }
  const diagnosis::Diagnosis& diagnosis = *report.diagnosis;
  if (diagnosis.apart) lines.emplace_back("the runs are too far apart before this step");
  note_broken_off(diagnosis, lines);
}

}  // namespace

bool is_judged(const CompareReport& report) {
  return report.diagnosis && report.diagnosis->is_judged() && !is_mapping_idle(report) &&
         std::ranges::all_of(report.tasks, [](const TaskSummary& rank) { return rank.not_judged.empty(); });
}

Coverage coverage_of(const CompareReport& report, std::string_view fail_on) {
  if (fail_on == "culprit") return report.diagnosis ? report.diagnosis->coverage : Coverage();
  Coverage all;
  for (const TaskSummary& task : report.tasks) all.add(task.coverage);
  return all;
}

diagnosis::NoCulprit judgement_of(const CompareReport& report) {
  if (!report.diagnosis) return {"not judged", "these results have no diagnosis"};
  if (report.diagnosis->is_judged() && !is_judged(report))
    return {"not judged", not_judged(report, "culprit").front()};
  return diagnosis::no_culprit(*report.diagnosis);
}

std::string idle_mapping_text(const std::string& file) {
  return display(file) + ": nothing in the dumps has a name of this mapping";
}

std::vector<std::string> not_judged(const CompareReport& report, std::string_view fail_on) {
  std::vector<std::string> lines;
  if (is_mapping_idle(report)) lines.push_back(idle_mapping_text(report.mapping_file));
  if (fail_on == "never") return lines;  // the summary reports the rest
  if (fail_on == "culprit") note_diagnosis(report, lines);
  if (fail_on == "warning" && report.diagnosis) note_broken_off(*report.diagnosis, lines);
  for (const std::string& line : report.one_sided) lines.push_back(display(line));
  const Coverage coverage = coverage_of(report, fail_on);
  if (coverage.compared == 0 && !coverage.gaps.empty()) return lines;  // the coverage says why
  for (const TaskSummary& rank : report.tasks) {
    const std::string& why = fail_on == "culprit" ? rank.not_judged : rank.not_judged_by_limits;
    if (!why.empty()) lines.push_back(display(rank.label.empty() ? rank.target : rank.label) + ": " + why);
  }
  return lines;
}

bool found_something(const CompareReport& report, std::string_view fail_on) {
  if (fail_on == "culprit") return report.diagnosis && report.diagnosis->found_something();
  return found_bad_rows(report, fail_on);
}

bool is_failed(const CompareReport& report, bool strict) {
  if (strict && !report.one_sided.empty()) return true;
  return std::ranges::any_of(report.tasks, [strict](const TaskSummary& rank) {
    return !rank.failure.empty() || (strict && rank.unreadable > 0);
  });
}

}  // namespace msprobe::compare
