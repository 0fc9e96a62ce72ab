// SPDX-License-Identifier: Apache-2.0
#include "compare/sinks/judgement.hpp"

namespace msprobe::compare {
namespace {

/// A rank that was not compared is a warning, and a comparison of no tensor at all an error.
bool found_bad_rows(const CompareReport& report, std::string_view level) {
  bool findings = level != "error" && !report.one_sided.empty();
  if (level == "warning" && report.diagnosis) findings |= report.diagnosis->broken_off > 0;
  bool measured = false;
  for (const TaskSummary& rank : report.tasks) {
    measured = measured || rank.measured > 0;
    // What nobody looked at stands behind certain evidence.
    findings = findings || rank.errors > 0 || rank.left_out || rank.rows_left_out > 0;
    if (level == "warning") findings = findings || rank.warnings > 0 || rank.measured == 0;
    if (level == "unmatched") findings = findings || rank.unmatched > 0 || rank.golden_only > 0;
  }
  return findings || !measured;
}

}  // namespace

bool is_judged(const CompareReport& report) {
  return report.diagnosis && report.diagnosis->is_judged();
}

bool found_culprit(const CompareReport& report) {
  return !report.one_sided.empty() || !is_judged(report) || report.diagnosis->has_culprit();
}

diagnosis::NoCulprit judgement_of(const CompareReport& report) {
  if (!report.diagnosis) return {"not judged", "these results have no diagnosis"};
  return diagnosis::no_culprit(*report.diagnosis);
}

Outcome judge(const CompareReport& report, const Gate& gate) {
  bool failed = gate.strict && !report.one_sided.empty();
  for (const TaskSummary& rank : report.tasks)
    failed = failed || !rank.failure.empty() || (gate.strict && rank.unreadable > 0);
  if (failed) return Outcome::failure;
  if (gate.fail_on == "never") return Outcome::clean;
  const bool findings =
      gate.fail_on == "culprit" ? found_culprit(report) : found_bad_rows(report, gate.fail_on);
  return findings ? Outcome::findings : Outcome::clean;
}

}  // namespace msprobe::compare
