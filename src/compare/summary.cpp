// SPDX-License-Identifier: Apache-2.0
#include "compare/summary.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "compare/statistics_difference.hpp"
#include "report/terminal.hpp"
#include "support/text.hpp"

namespace msprobe::compare {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The number that tells most about a row, and how bad it is.
void measure(const RankResult& result, const Row& row, std::size_t index, NotedRow& noted) {
  if (!row.matched() || result.mode == Mode::md5) return;
  if (result.mode == Mode::tensor) {
    const TensorMetrics& metrics = result.metrics[index];
    if (metrics.status == MetricStatus::not_applicable) {
      noted.weight = kInfinity;
      noted.measure = "NaN/Inf differ";
    } else if (metrics.status == MetricStatus::computed) {
      const Metric which = metrics.is_scalar ? kMaxRelative : kCosine;
      const double value = metrics.value[which];
      noted.measure = metrics.is_scalar ? fmt::format("MaxRelativeErr {:.4g}", value)
                                        : fmt::format("Cosine {:.6g}", value);
      noted.weight = std::isnan(value) ? kInfinity : metrics.is_scalar ? value : 1 - value;
    }
    return;
  }
  const Item& item = result.target_item(row);
  const Item& bench = result.golden_item(row);
  for (const Statistic which : {kNorm, kMax}) {
    const ValueDifference each = difference(item.statistics[which], result.target.pool,
                                            bench.statistics[which], result.golden.pool, result.python_rules);
    const double fraction = relative_fraction(each);
    if (std::isnan(fraction) && each.kind != DifferenceKind::nan) continue;
    noted.weight = std::isnan(fraction) ? kInfinity : fraction;
    const char* name = which == kNorm ? "NormRelativeErr" : "MaxRelativeErr";
    noted.measure = std::isfinite(fraction) ? fmt::format("{} {:.4g}%", name, fraction * 100)
                                            : fmt::format("{} {}", name, relative_text(each));
    return;
  }
}

NotedRow note(const RankResult& result, std::size_t index) {
  const Row& row = result.rows[index];
  NotedRow noted;
  noted.name = std::string(result.target.name(result.target_item(row)));
  noted.verdict = row.verdict;
  noted.index = index;
  measure(result, row, index, noted);
  // The message that made the verdict.
  const std::string prefix = std::string(verdict_name(row.verdict)) + ": ";
  for (const std::string& message : row.messages) {
    if (message.starts_with(prefix)) {
      noted.reason = message.substr(prefix.size());
      break;
    }
  }
  return noted;
}

bool worse(const NotedRow& a, const NotedRow& b) {
  if (a.verdict != b.verdict) return a.verdict > b.verdict;
  if (a.weight != b.weight) return a.weight > b.weight;
  return a.index < b.index;
}

std::vector<std::string> line_of(const NotedRow& row) {
  return {std::string(verdict_name(row.verdict)), row.name, row.measure, row.reason};
}

report::Severity severity_of(Verdict verdict) {
  if (verdict == Verdict::error) return report::Severity::error;
  return verdict == Verdict::warning ? report::Severity::warning : report::Severity::none;
}

std::string counts(const RankSummary& rank, bool color) {
  const std::uint64_t pass = rank.rows - rank.errors - rank.warnings;
  std::string line = fmt::format("{} rows: ", human_count(rank.rows));
  const auto part = [&](std::uint64_t count, const char* what, report::Severity severity) {
    const std::string text = human_count(count) + " " + what;
    return count == 0 ? text : report::paint(text, report::color_of(severity), color);
  };
  line += part(rank.errors, "error", report::Severity::error) + ", ";
  line += part(rank.warnings, "warning", report::Severity::warning) + ", ";
  line += human_count(pass) + " pass";
  if (rank.unmatched > 0) line += fmt::format("; {} unmatched", human_count(rank.unmatched));
  if (rank.unreadable > 0) line += fmt::format("; {} not comparable", human_count(rank.unreadable));
  if (rank.golden_only > 0)
    line += fmt::format("; {} only in the golden side", human_count(rank.golden_only));
  return line;
}

void append_rows(std::string& out, const std::vector<NotedRow>& rows, bool color) {
  report::TerminalStyle style;
  style.width = report::terminal_width(STDERR_FILENO);
  style.color = color;
  style.indent = 4;
  std::vector<std::vector<std::string>> lines;
  for (const NotedRow& row : rows) {
    lines.push_back(line_of(row));
    style.severities.push_back(severity_of(row.verdict));
  }
  out += report::render_columns({}, lines, style);
}

}  // namespace

RankSummary summarize(const RankResult& result) {
  RankSummary summary;
  summary.mode = result.mode;
  summary.rows = result.rows.size();
  summary.golden_only = result.golden_only;
  std::vector<NotedRow> bad;
  std::optional<std::size_t> first_error;
  std::optional<std::size_t> first_warning;
  for (std::size_t i = 0; i < result.rows.size(); ++i) {
    const Row& row = result.rows[i];
    if (!row.matched()) ++summary.unmatched;
    if (!result.metrics.empty() && result.metrics[i].failed) ++summary.unreadable;
    if (row.verdict == Verdict::pass) continue;
    const bool error = row.verdict == Verdict::error;
    ++(error ? summary.errors : summary.warnings);
    std::optional<std::size_t>& first = error ? first_error : first_warning;
    if (!first) first = i;
    bad.push_back(note(result, i));
    // Only the worst are kept; the list never grows with the dump.
    if (bad.size() >= 64 * kWorstRows) {
      std::nth_element(bad.begin(), bad.begin() + kWorstRows, bad.end(), worse);
      bad.resize(kWorstRows);
    }
  }
  if (first_error || first_warning)
    summary.first_bad = note(result, first_error ? *first_error : *first_warning);
  std::sort(bad.begin(), bad.end(), worse);
  bad.resize(std::min(bad.size(), kWorstRows));
  summary.worst = std::move(bad);
  return summary;
}

std::string render_summary(const CompareReport& report, bool color) {
  std::string out;
  for (const RankSummary& rank : report.ranks) {
    const std::string label = rank.label.empty() ? "" : display(rank.label) + "  ";
    if (!rank.failure.empty()) {
      out += label + report::paint("failed: ", report::Color::red, color) + rank.failure + "\n";
      continue;
    }
    out += fmt::format("{}{} against {} ({})\n", label, display(rank.target), display(rank.golden),
                       mode_name(rank.mode));
    if (rank.rows == 0) {
      out += "  no rows: there is nothing to compare in the target\n";
      continue;
    }
    out += "  " + counts(rank, color) + "\n";
    if (rank.first_bad) {
      out += "  first in execution order\n";
      append_rows(out, {*rank.first_bad}, color);
    }
    if (rank.worst.size() > 1) {
      out += fmt::format("  worst {}\n", rank.worst.size());
      append_rows(out, rank.worst, color);
    }
    for (const std::string& file : rank.files) out += "  written: " + display(file) + "\n";
  }
  for (const std::string& line : report.one_sided) {
    out += report::paint("not compared: ", report::Color::yellow, color) + display(line) + "\n";
  }
  return out;
}

}  // namespace msprobe::compare
