// SPDX-License-Identifier: Apache-2.0
#include "compare/sinks/summary_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "compare/sinks/judgement.hpp"
#include "report/worst.hpp"
#include "support/text.hpp"

namespace msprobe::compare {
namespace {

using verdict::Verdict;

std::string number_of_rows(std::uint64_t count) {
  return human_count(count) + (count == 1 ? " row" : " rows");
}

/// `210 rows: 1 error, 0 warning, 209 pass`, and further counts.
std::string counts(const TaskSummary& rank, bool color) {
  std::string line;
  line += report::count_text(rank.errors, "error", report::Severity::error, color) + ", ";
  line += report::count_text(rank.warnings, "warning", report::Severity::warning, color) + ", ";
  line += human_count(rank.passed()) + " pass";
  if (rank.rows_left_out > 0) line += fmt::format("; {} left out", human_count(rank.rows_left_out));
  if (rank.unmatched > 0) line += fmt::format("; {} unmatched", human_count(rank.unmatched));
  if (rank.unknown > 0)
    line += fmt::format("; {} not compared, because no statistic is a number on both sides",
                        human_count(rank.unknown));
  if (rank.unreadable > 0) line += fmt::format("; {} not comparable", human_count(rank.unreadable));
  if (rank.golden_only > 0) line += fmt::format("; {} only in golden", human_count(rank.golden_only));
  return line;
}

/// The counts of all tasks.
TaskSummary total_of(const CompareReport& report) {
  TaskSummary total;
  for (const TaskSummary& task : report.tasks) {
    for (const auto count : {&TaskSummary::rows, &TaskSummary::errors, &TaskSummary::warnings,
                             &TaskSummary::unmatched, &TaskSummary::golden_only, &TaskSummary::unreadable,
                             &TaskSummary::unknown, &TaskSummary::rows_left_out})
      total.*count += task.*count;
  }
  return total;
}

/// How many rows have each origin.
std::string origins(const diagnosis::Diagnosis& diagnosis) {
  using diagnosis::Origin;
  std::string line = number_of_rows(diagnosis.rows()) + ": ";
  const std::pair<Origin, const char*> parts[] = {{Origin::equal, " equal, "},
                                                  {Origin::rounding, " rounding, "},
                                                  {Origin::unexplained, " unexplained, "},
                                                  {Origin::introduced, " introduced, "},
                                                  {Origin::propagated, " propagated, "},
                                                  {Origin::not_compared, " not compared\n"}};
  for (const auto& [origin, words] : parts) {
    if (origin != Origin::unexplained || !diagnosis.is_clear())
      line += human_count(diagnosis.count(origin)) + words;
  }
  return line;
}

/// One row in full; its name is never cut.
std::string first_bad(const NotedRow& row, bool color) {
  std::string out =
      "  first in execution order: " + report::paint(row.name, report::Color::bold, color) + "\n";
  out +=
      "    " +
      report::paint(verdict::verdict_name(row.verdict), report::color_of(severity_of(row.verdict)), color) +
      ": " + display(row.reason);
  if (!row.measure.empty()) out += " (" + display(row.measure) + ")";
  return out + "\n";
}

std::string worst(const std::vector<NotedRow>& rows, const std::string& by, bool color) {
  std::vector<report::WorstLine> lines;
  for (const NotedRow& row : rows) {
    lines.push_back({severity_of(row.verdict),
                     {std::string(verdict::verdict_name(row.verdict)), row.name,
                      row.measure.empty() ? row.reason : row.measure}});
  }
  return report::render_worst(std::move(lines), by, color);
}

/// The line about a dump of the structure, with modules alone or with entries without values.
std::string no_values(bool entries) {
  return fmt::format(
      "no values were recorded (task structure), only {}: record with task statistics or tensor",
      entries ? "types and shapes" : "which module calls which (construct.json)");
}

/// True if a shown row uses the Python tool's words for the two sides.
bool speaks_of_npu(const NotedRow& row) {
  return row.measure.find("NPU") != std::string::npos || row.reason.find("NPU") != std::string::npos;
}

/// The text about a comparison on the terminal.
class SummaryText {
 public:
  SummaryText(const CompareReport& report, const SummaryOptions& options, const Screen& screen)
      : report_(report), options_(options), screen_(screen) {}

  std::string text() {
    add_answer();
    if (options_.details) {
      for (const TaskSummary& task : report_.tasks) add_task(task);
    } else {
      add_totals();
      add_files();
    }
    add_terms();
    if (!report_.html_file.empty()) add_file("report", report_.html_file);
    if (report_.rows_not_in_html > 0)
      out_ += "the report cannot hold all rows: those that differ come first, and " +
              human_count(report_.rows_not_in_html) + " are left out\n";
    add_some("not compared", report_.one_sided);
    add_some("not multiplied", report_.not_multiplied);
    return std::move(out_);
  }

  /// Without files.
  std::string result() {
    add_answer();
    add_totals();
    add_terms();
    add_some("not compared", report_.one_sided);
    return std::move(out_);
  }

 private:
  void add_answer() {
    if (report_.diagnosis)
      out_ +=
          answer_text(*report_.diagnosis, screen_, is_judged(report_)) + "\n" + origins(*report_.diagnosis);
  }

  void add_terms() {
    if (says_npu_) out_ += "NPU is target, Bench is golden, on any device (the terms of the Python tool)\n";
  }

  std::string warning(std::string_view title) const {
    return report::paint(std::string(title) + ":", report::Color::yellow, screen_.color) + " ";
  }

  void add_file(std::string_view title, const std::string& file) {
    out_ += fmt::format("{}: {}{}\n", title, display(file),
                        report_.replaced ? ", replacing an existing file" : "");
  }

  /// Adds the first lines of a list; all lines with --details.
  void add_some(std::string_view title, const std::vector<std::string>& lines) {
    const std::size_t shown = options_.details ? lines.size() : std::min(lines.size(), kShownLines);
    for (std::size_t i = 0; i < shown; ++i) out_ += warning(title) + display(lines[i]) + "\n";
    if (shown < lines.size())
      out_ +=
          warning(title) + fmt::format("{} more (--details lists them)\n", human_count(lines.size() - shown));
  }

  /// Problems of a task as a whole, a line each.
  std::vector<std::string> remarks(const TaskSummary& task) const {
    const auto red = [&](std::string_view text) {
      return report::paint(text, report::Color::red, screen_.color);
    };
    if (!task.failure.empty()) return {red("failed:") + " " + task.failure};
    if (task.left_out) return {warning("left out") + "an earlier step of this rank has certain evidence"};
    std::vector<std::string> lines;
    if (task.rows == 0) lines.emplace_back("no rows: the target has nothing to compare");
    if (task.no_values) lines.push_back(no_values(task.rows > 0));
    if (task.rows > 0 && task.measured == 0) lines.push_back(red("no tensor was compared"));
    if (!task.stopped_behind.empty())
      lines.push_back(warning("left out") +
                      fmt::format("{} of {} entries, after {}", human_count(task.entries_left_out),
                                  human_count(task.entries), display(task.stopped_behind)));
    if (task.measured > 0 && !task.not_judged_by_limits.empty())
      lines.push_back(warning("not judged by fixed limits") + task.not_judged_by_limits);
    if (!task.advice.empty()) lines.push_back(warning("unmatched") + task.advice);
    return lines;
  }

  void add_task(const TaskSummary& task) {
    const std::string label = task.label.empty() ? "" : display(task.label) + "  ";
    const std::vector<std::string> lines = remarks(task);
    if (!task.failure.empty() || task.left_out) {
      out_ += label + lines.front() + "\n";
      return;
    }
    out_ += fmt::format("{}{} against {} ({})\n", label, display(task.target), display(task.golden),
                        measuring::mode_name(task.mode));
    if (task.rows > 0)
      out_ += fmt::format("  {}: {}\n", number_of_rows(task.rows), counts(task, screen_.color));
    for (const std::string& line : lines) out_ += "  " + line + "\n";
    if (task.first_bad) {
      out_ += first_bad(*task.first_bad, screen_.color);
      says_npu_ = says_npu_ || speaks_of_npu(*task.first_bad);
    }
    if (task.worst.size() > (task.worst_by.empty() ? 1 : 0)) {
      out_ += worst(task.worst, task.worst_by, screen_.color);
      says_npu_ = says_npu_ || std::ranges::any_of(task.worst, speaks_of_npu);
    }
    for (const std::string& file : task.files) {
      out_ += "  ";
      add_file("written", file);
    }
  }

  /// Adds the totals of all tasks. A remark that holds for several tasks appears once, with the first of
  /// them.
  void add_totals() {
    const TaskSummary total = total_of(report_);
    const bool known = report_.diagnosis.has_value();
    if (total.rows > 0) {
      out_ += known ? "by fixed limits: " : number_of_rows(total.rows) + ": ";
      out_ += counts(total, screen_.color);
      if (total.errors + total.warnings > 0 && !options_.details) out_ += " (--details lists the worst)";
      out_ += '\n';
    }
    if (!known) add_first_bad();
    add_first_unreadable(total.unreadable);
    add_remarks();
  }

  /// Without a diagnosis, the first bad row is the answer.
  void add_first_bad() {
    const auto bad = [](Verdict verdict) {
      return
          [verdict](const TaskSummary& task) { return task.first_bad && task.first_bad->verdict == verdict; };
    };
    auto found = std::ranges::find_if(report_.tasks, bad(Verdict::error));
    if (found == report_.tasks.end()) found = std::ranges::find_if(report_.tasks, bad(Verdict::warning));
    if (found == report_.tasks.end()) return;
    if (!found->label.empty()) out_ += display(found->label) + "\n";
    out_ += first_bad(*found->first_bad, screen_.color);
    says_npu_ = speaks_of_npu(*found->first_bad);
  }

  void add_first_unreadable(std::uint64_t count) {
    const auto found = std::ranges::find_if(
        report_.tasks, [](const TaskSummary& task) { return task.first_unreadable.has_value(); });
    if (found == report_.tasks.end()) return;
    const NotedRow& row = *found->first_unreadable;
    out_ += warning("not comparable") + display(row.name) + ": " + display(row.reason);
    if (count > 1) out_ += fmt::format(" (the first of {})", human_count(count));
    out_ += '\n';
  }

  void add_remarks() {
    std::vector<std::pair<std::string, std::vector<const TaskSummary*>>> said;
    const auto failed = static_cast<std::size_t>(
        std::ranges::count_if(report_.tasks, [](const TaskSummary& task) { return !task.failure.empty(); }));
    if (failed > 0)
      out_ += report::paint("failed:", report::Color::red, screen_.color) +
              fmt::format(" {} of {} comparisons\n", human_count(failed), human_count(report_.tasks.size()));
    for (const TaskSummary& task : report_.tasks) {
      if (!task.failure.empty()) continue;  // an error message says why
      for (const std::string& line : remarks(task)) {
        auto found =
            std::ranges::find(said, line, &std::pair<std::string, std::vector<const TaskSummary*>>::first);
        if (found == said.end()) found = said.insert(said.end(), {line, {}});
        found->second.push_back(&task);
      }
    }
    for (const auto& [line, tasks] : said) {
      if (!tasks.front()->label.empty()) {
        out_ += display(tasks.front()->label);
        if (tasks.size() > 1) out_ += fmt::format(" and {} more", human_count(tasks.size() - 1));
        out_ += "  ";
      }
      out_ += line + "\n";
    }
  }

  void add_files() {
    std::vector<std::string> files;
    for (const TaskSummary& task : report_.tasks)
      files.insert(files.end(), task.files.begin(), task.files.end());
    const std::size_t shown = files.size() <= kShownLines ? files.size() : 1;
    for (std::size_t i = 0; i < shown; ++i) add_file("written", files[i]);
    if (shown < files.size())
      out_ += fmt::format("written: {} more files\n", human_count(files.size() - shown));
  }

  static constexpr std::size_t kShownLines = 4;
  const CompareReport& report_;
  SummaryOptions options_;
  Screen screen_;
  bool says_npu_ = false;
  std::string out_;
};

}  // namespace

std::string render_summary(const CompareReport& report, const SummaryOptions& options, const Screen& screen) {
  return SummaryText(report, options, screen).text();
}

std::string render_result(const CompareReport& report) {
  SummaryOptions options;
  options.details = true;
  return SummaryText(report, options, {}).result();
}

}  // namespace msprobe::compare
