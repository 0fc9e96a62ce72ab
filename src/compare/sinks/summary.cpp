// SPDX-License-Identifier: Apache-2.0
#include "compare/sinks/summary.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "compare/dump_tree/rank_rows.hpp"
#include "compare/sinks/advice.hpp"
#include "diagnosis/packets.hpp"
#include "diagnosis/sentences.hpp"
#include "report/terminal.hpp"
#include "report/worst.hpp"
#include "support/ascii.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::compare {
namespace {

/// The place of a metric among those of the rows.
std::size_t find_metric(const Rows& rows, const std::string& name) {
  const std::vector<std::string> metrics = rows.metrics();
  const auto found = std::ranges::find_if(
      metrics, [&](const std::string& one) { return lower_case(one) == lower_case(name); });
  if (found != metrics.end()) return static_cast<std::size_t>(found - metrics.begin());
  if (metrics.empty()) {
    throw UsageError(rows.mode() == Mode::md5 ? "--by: checksum comparisons have no metrics"
                                              : "--by: supported only for dumps with a dump.json");
  }
  throw UsageError(fmt::format("--by: '{}' is not a metric of a {} comparison: {}", display(name),
                               mode_name(rows.mode()), fmt::join(metrics, ", ")));
}

/// By weight alone, where a metric was asked for.
bool weighs_more(const NotedRow& a, const NotedRow& b) {
  return a.weight != b.weight ? a.weight > b.weight : a.index < b.index;
}

bool worse(const NotedRow& a, const NotedRow& b) {
  if (a.verdict != b.verdict) return a.verdict > b.verdict;
  if (a.weight != b.weight) return a.weight > b.weight;
  return a.index < b.index;
}

using Order = bool (*)(const NotedRow&, const NotedRow&);

std::string counts(const TaskSummary& rank, bool color) {
  std::string line = fmt::format("{} rows: ", human_count(rank.rows));
  const auto part = [&](std::uint64_t count, const char* what, report::Severity severity) {
    const std::string text = human_count(count) + " " + what;
    return count == 0 ? text : report::paint(text, report::color_of(severity), color);
  };
  line += part(rank.errors, "error", report::Severity::error) + ", ";
  line += part(rank.warnings, "warning", report::Severity::warning) + ", ";
  line += human_count(rank.passed()) + " pass";
  if (rank.rows_left_out > 0) line += fmt::format("; {} left out", human_count(rank.rows_left_out));
  if (rank.unmatched > 0) line += fmt::format("; {} unmatched", human_count(rank.unmatched));
  if (rank.unknown > 0)
    line += fmt::format("; {} not compared, because no statistic was recorded on both sides",
                        human_count(rank.unknown));
  if (rank.unreadable > 0) line += fmt::format("; {} not comparable", human_count(rank.unreadable));
  if (rank.golden_only > 0) line += fmt::format("; {} only in golden", human_count(rank.golden_only));
  return line;
}

/// How many rows have which origin.
std::string origins(const diagnosis::Diagnosis& diagnosis) {
  using diagnosis::Origin;
  std::uint64_t rows = 0;
  for (const std::uint64_t count : diagnosis.counts) rows += count;
  std::string line = fmt::format("{} rows: ", human_count(rows));
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

/// One row in full: its name is never cut.
std::string first_bad(const NotedRow& row, bool color) {
  std::string out =
      "  first in execution order: " + report::paint(row.name, report::Color::bold, color) + "\n";
  out += "    " +
         report::paint(verdict_name(row.verdict), report::color_of(severity_of(row.verdict)), color) + ": " +
         display(row.reason);
  if (!row.measure.empty()) out += " (" + display(row.measure) + ")";
  return out + "\n";
}

std::string worst(const std::vector<NotedRow>& rows, const std::string& by, bool color) {
  std::vector<report::WorstLine> lines;
  for (const NotedRow& row : rows) {
    lines.push_back(
        {severity_of(row.verdict),
         {std::string(verdict_name(row.verdict)), row.name, row.measure.empty() ? row.reason : row.measure}});
  }
  return report::render_worst(std::move(lines), by, color);
}

class Summaries final : public Sink {
 public:
  Summaries(const SummaryOptions& options, const MatchOptions& match, const Rules& rules)
      : options_(options), match_(match), rules_(rules) {}

  void begin(const Plan& plan) override { found_.resize(plan.tasks.size()); }

  void take(std::size_t task, const std::shared_ptr<const Rows>& rows, TaskSummary& summary) override {
    summary = summarize(*rows, options_);
    const RankRows* entries = rows->of_entries();
    if (entries == nullptr) return;
    const RankResult& result = entries->result();
    summary.advice = advise(result, match_);
    summary.no_values = result.target.header.task == "structure";
    if (!result.diagnosis) return;
    if (result.diagnosis->left_out > 0) {
      summary.entries = result.target.apis.size();
      summary.entries_left_out = result.diagnosis->left_out;
      summary.stopped_behind = result.target.text(result.target.apis[result.entries_reached - 1].name);
    }
    // Without what it says of each item: memory does not grow with the number of ranks.
    found_[task] = *result.diagnosis;
  }

  void pack(std::size_t task, PacketWriter& packet) const override { packet(found_[task]); }
  void unpack(std::size_t task, PacketReader& packet) override { packet(found_[task]); }

  void end(CompareReport& report) override {
    std::vector<diagnosis::RankFindings> ranks;
    for (std::optional<diagnosis::RankFindings>& rank : found_) {
      if (rank) ranks.push_back(*std::move(rank));
    }
    if (!ranks.empty()) report.diagnosis = diagnosis::conclude(ranks, rules_.names_source);
  }

 private:
  SummaryOptions options_;
  MatchOptions match_;
  const Rules& rules_;
  std::vector<std::optional<diagnosis::RankFindings>> found_;  // by task
};

/// A dump of the structure: of modules alone, or of entries without values.
std::string no_values(bool entries) {
  return fmt::format(
      "  no values were recorded (task structure), only {}: record with task statistics or tensor\n",
      entries ? "types and shapes" : "which module calls which (construct.json)");
}

/// Does a row that is shown use the words of the Python tool for the two sides?
bool speaks_of_npu(const CompareReport& report) {
  const auto speaks = [](const NotedRow& row) {
    return row.measure.find("NPU") != std::string::npos || row.reason.find("NPU") != std::string::npos;
  };
  return std::ranges::any_of(report.tasks, [&](const TaskSummary& task) {
    return (task.first_bad && speaks(*task.first_bad)) || std::ranges::any_of(task.worst, speaks);
  });
}

}  // namespace

TaskSummary summarize(const Rows& rows, const SummaryOptions& options) {
  TaskSummary summary;
  summary.mode = rows.mode();
  summary.rows = rows.rows();
  summary.golden_only = rows.golden_without_row();
  std::optional<std::size_t> metric;
  if (!options.by.empty()) {
    metric = find_metric(rows, options.by);
    summary.worst_by = rows.metrics()[*metric];
  }
  report::Worst<NotedRow, Order> worst(options.top, metric ? weighs_more : worse);
  std::optional<std::size_t> first_error;
  std::optional<std::size_t> first_warning;
  for (std::size_t i = 0; i < rows.rows(); ++i) {
    const RowFacts facts = rows.facts(i);
    if (facts.left_out) {
      ++summary.rows_left_out;
      continue;
    }
    summary.unmatched += facts.target_only ? 1 : 0;
    summary.golden_only += facts.golden_only ? 1 : 0;
    summary.unreadable += facts.unreadable ? 1 : 0;
    summary.measured += facts.measured ? 1 : 0;
    if (NotedRow noted; metric && rows.weigh(i, *metric, noted)) worst.add(std::move(noted));
    summary.unknown += facts.unknown && facts.verdict == Verdict::pass ? 1 : 0;
    if (facts.verdict == Verdict::pass) continue;
    const bool error = facts.verdict == Verdict::error;
    ++(error ? summary.errors : summary.warnings);
    std::optional<std::size_t>& first = error ? first_error : first_warning;
    if (!first) first = i;
    if (!metric) worst.add(rows.note(i));
  }
  if (first_error || first_warning)
    summary.first_bad = rows.note(first_error ? *first_error : *first_warning);
  summary.worst = worst.take();
  return summary;
}

std::unique_ptr<Sink> summary_sink(const SummaryOptions& options, const MatchOptions& match,
                                   const Rules& rules) {
  return std::make_unique<Summaries>(options, match, rules);
}

std::string render_summary(const CompareReport& report, bool color) {
  std::string out;
  const char* const replaced = report.replaced ? ", replacing an existing file" : "";
  if (report.diagnosis) out += diagnosis::block(*report.diagnosis) + "\n" + origins(*report.diagnosis);
  for (const TaskSummary& rank : report.tasks) {
    const std::string label = rank.label.empty() ? "" : display(rank.label) + "  ";
    if (!rank.failure.empty()) {
      out += label + report::paint("failed: ", report::Color::red, color) + rank.failure + "\n";
      continue;
    }
    if (rank.left_out) {
      out += label + report::paint("left out: ", report::Color::yellow, color) +
             "an earlier step of this rank has certain evidence\n";
      continue;
    }
    out += fmt::format("{}{} against {} ({})\n", label, display(rank.target), display(rank.golden),
                       mode_name(rank.mode));
    if (rank.rows == 0) {
      out += "  no rows: the target has nothing to compare\n";
      if (rank.no_values) out += no_values(false);
      continue;
    }
    out += "  " + counts(rank, color) + "\n";
    if (rank.no_values) out += no_values(true);
    if (rank.measured == 0)
      out += report::paint("  no tensor was compared", report::Color::red, color) + "\n";
    if (!rank.stopped_behind.empty()) {
      out += "  " + report::paint("left out: ", report::Color::yellow, color) +
             fmt::format("{} of {} entries, after {}\n", human_count(rank.entries_left_out),
                         human_count(rank.entries), display(rank.stopped_behind));
    }
    if (!rank.advice.empty())
      out += "  " + report::paint("unmatched: ", report::Color::yellow, color) + rank.advice + "\n";
    if (rank.first_bad) out += first_bad(*rank.first_bad, color);
    if (rank.worst.size() > (rank.worst_by.empty() ? 1 : 0)) out += worst(rank.worst, rank.worst_by, color);
    for (const std::string& file : rank.files) out += "  written: " + display(file) + replaced + "\n";
  }
  if (speaks_of_npu(report))
    out += "NPU is target, Bench is golden, on any device (the terms of the Python tool)\n";
  if (!report.html_file.empty()) out += "report: " + display(report.html_file) + replaced + "\n";
  if (report.rows_not_in_html > 0)
    out += "the report cannot hold all rows: those that differ come first, and " +
           human_count(report.rows_not_in_html) + " are left out\n";
  for (const std::string& line : report.one_sided) {
    out += report::paint("not compared: ", report::Color::yellow, color) + display(line) + "\n";
  }
  for (const std::string& line : report.not_multiplied)
    out += report::paint("not multiplied: ", report::Color::yellow, color) + line + "\n";
  return out;
}

}  // namespace msprobe::compare
