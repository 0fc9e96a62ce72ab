// SPDX-License-Identifier: Apache-2.0
#include "compare/reports/summary.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "compare/metrics/statistics_difference.hpp"
#include "compare/reports/result_table.hpp"
#include "compare/reports/severity.hpp"
#include "report/terminal.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::compare {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Relative error of the norm, or of the maximum where there is no norm.
void measure_statistics(const RankResult& result, const Row& row, NotedRow& noted) {
  const Item& item = result.target_item(row);
  const Item& bench = result.golden_item(row);
  for (const Statistic which : {kNorm, kMax}) {
    const ValueDifference each = difference(item.statistics[which], result.target.pool,
                                            bench.statistics[which], result.golden.pool, result.measure);
    const double fraction = relative_fraction(each);
    if (std::isnan(fraction) && each.kind != DifferenceKind::nan) continue;
    noted.weight = std::isnan(fraction) ? kInfinity : fraction;
    noted.measure =
        fmt::format("{} {}", which == kNorm ? "NormRelativeErr" : "MaxRelativeErr",
                    std::isfinite(fraction) ? fmt::format("{:.4g}%", fraction * 100) : relative_text(each));
    return;
  }
}

void measure_tensor(const TensorMetrics& metrics, NotedRow& noted) {
  if (metrics.status == MetricStatus::not_applicable) {
    noted.weight = kInfinity;
    noted.measure = "NaN or Inf at other places";
  } else if (metrics.status == MetricStatus::shape_unmatched) {
    noted.weight = kInfinity;
    noted.measure = "shapes differ";
  } else if (metrics.status == MetricStatus::computed) {
    const Metric which = metrics.is_scalar ? kMaxRelative : kCosine;
    const double value = metrics.value[which];
    noted.measure = fmt::format("{} {:.6g}", metrics.is_scalar ? "MaxRelativeErr" : "Cosine", value);
    noted.weight = std::isnan(value) ? kInfinity : metrics.is_scalar ? value : 1 - value;
  }
}

/// The number that tells most about a row, and how bad it is.
void measure(const RankResult& result, const Row& row, std::size_t index, NotedRow& noted) {
  if (!row.matched() || result.mode == Mode::md5) return;
  const Item& item = result.target_item(row);
  const Item& bench = result.golden_item(row);
  if (result.mode == Mode::tensor) {
    measure_tensor(result.metrics[index], noted);
  } else {
    measure_statistics(result, row, noted);
  }
  // What the rule speaks of says more than any other number.
  const auto speaks_of = [&](std::string_view what) { return noted.reason.find(what) != std::string::npos; };
  const auto instead = [&](std::string_view what, std::string_view a, std::string_view b) {
    noted.measure = fmt::format("{}{}{}, not {}", what, what.empty() ? "" : " ", a, b);
  };
  if (speaks_of("The dtype of")) {
    instead("dtype", result.target.text(item.dtype), result.golden.text(bench.dtype));
  } else if (speaks_of("The shape of")) {
    instead("shape", result.target.text(item.shape), result.golden.text(bench.shape));
  } else if (speaks_of("scalar parameters")) {
    instead("", to_text(item.statistics[kMax], result.target.pool),
            to_text(bench.statistics[kMax], result.golden.pool));
  } else if (speaks_of("One Thousandth")) {
    noted.measure =
        fmt::format("One Thousandth Err Ratio {:.4g}", result.metrics[index].value[kOneThousandth]);
  }
}

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
  return out;
}

/// The place of a metric among those of the mode.
std::size_t find_metric(Mode mode, const std::string& name) {
  const std::vector<std::string> metrics = metric_columns(mode);
  const auto found = std::find_if(metrics.begin(), metrics.end(),
                                  [&](const std::string& one) { return lower(one) == lower(name); });
  if (found != metrics.end()) return static_cast<std::size_t>(found - metrics.begin());
  if (metrics.empty()) throw UsageError("--by: a comparison of checksums has no metrics");
  throw UsageError(fmt::format("--by: '{}' is no metric of a {} comparison: {}", display(name),
                               mode_name(mode), fmt::join(metrics, ", ")));
}

/// Weighs a row by one metric alone. False if it has no such number, or one that says that nothing differs.
bool weigh_by(const RankResult& result, std::size_t index, std::size_t metric, NotedRow& noted) {
  const Row& row = result.rows[index];
  if (!row.matched()) return false;
  if (result.mode == Mode::tensor) {
    const TensorMetrics& metrics = result.metrics[index];
    const bool absent = metrics.is_scalar && metric != kMaxAbs && metric != kMaxRelative;
    if (metrics.status != MetricStatus::computed || absent) return false;
    const double value = metrics.value[metric];
    const bool is_distance = metric == kEucDist || metric == kMaxAbs || metric == kMaxRelative;
    noted.weight = std::isnan(value) ? kInfinity : is_distance ? value : 1 - value;
    noted.measure = fmt::format("{:.6g}", value);
    return noted.weight > 0;
  }
  const std::size_t which = metric % kStatistics;
  const ValueDifference each =
      difference(result.target_item(row).statistics[which], result.target.pool,
                 result.golden_item(row).statistics[which], result.golden.pool, result.measure);
  if (each.kind == DifferenceKind::missing || each.kind == DifferenceKind::differ) return false;
  if (metric < kStatistics) {
    const bool finite = each.kind == DifferenceKind::zero || each.kind == DifferenceKind::number;
    noted.weight = finite ? std::abs(each.difference) : kInfinity;
    noted.measure = difference_text(each);
  } else {
    const double fraction = relative_fraction(each);
    noted.weight = std::isnan(fraction) ? kInfinity : fraction;
    noted.measure = std::isfinite(fraction) ? fmt::format("{:.4g}%", fraction * 100) : relative_text(each);
  }
  return noted.weight > 0;
}

NotedRow note(const RankResult& result, std::size_t index) {
  const Row& row = result.rows[index];
  NotedRow noted;
  noted.name = std::string(result.name_of(row));
  noted.verdict = row.verdict;
  noted.index = index;
  // The message that made the verdict.
  const std::string prefix = std::string(verdict_name(row.verdict)) + ": ";
  for (const std::string& message : row.messages) {
    if (message.starts_with(prefix)) {
      noted.reason = message.substr(prefix.size());
      break;
    }
  }
  measure(result, row, index, noted);
  return noted;
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

/// Keeps the worst of many rows; the list never grows with the dump.
class WorstRows {
 public:
  using Order = bool (*)(const NotedRow&, const NotedRow&);
  WorstRows(std::size_t count, Order order) : count_(count), order_(order) {}

  void add(NotedRow row) {
    rows_.push_back(std::move(row));
    if (rows_.size() < 64 * std::max<std::size_t>(count_, 10)) return;
    std::nth_element(rows_.begin(), rows_.begin() + static_cast<std::ptrdiff_t>(count_), rows_.end(), order_);
    rows_.resize(count_);
  }
  std::vector<NotedRow> take() {
    std::sort(rows_.begin(), rows_.end(), order_);
    rows_.resize(std::min(rows_.size(), count_));
    return std::move(rows_);
  }

 private:
  std::size_t count_;
  Order order_;
  std::vector<NotedRow> rows_;
};

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

/// One row told in full: the name is never cut.
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
  report::TerminalStyle style;
  style.width = report::terminal_width(STDERR_FILENO);
  style.color = color;
  style.indent = 4;
  std::vector<std::vector<std::string>> lines;
  for (const NotedRow& row : rows) {
    lines.push_back(
        {std::string(verdict_name(row.verdict)), row.name, row.measure.empty() ? row.reason : row.measure});
    style.severities.push_back(severity_of(row.verdict));
  }
  const std::string title = by.empty() ? fmt::format("  worst {}:\n", rows.size())
                                       : fmt::format("  worst {} by {}:\n", rows.size(), by);
  return title + report::render_columns({}, lines, style);
}

}  // namespace

RankSummary summarize(const RankResult& result, const SummaryOptions& options) {
  RankSummary summary;
  summary.mode = result.mode;
  summary.rows = result.rows.size();
  summary.golden_only = result.golden_only;
  std::optional<std::size_t> metric;
  if (!options.by.empty()) {
    metric = find_metric(result.mode, options.by);
    summary.worst_by = metric_columns(result.mode)[*metric];
  }
  WorstRows worst(options.top, metric ? weighs_more : worse);
  std::optional<std::size_t> first_error;
  std::optional<std::size_t> first_warning;
  for (std::size_t i = 0; i < result.rows.size(); ++i) {
    const Row& row = result.rows[i];
    if (!row.has_golden()) ++summary.unmatched;
    if (!result.metrics.empty() && result.metrics[i].failed) ++summary.unreadable;
    if (metric) {
      NotedRow noted;
      noted.index = i;
      noted.verdict = row.verdict;
      if (weigh_by(result, i, *metric, noted)) {
        noted.name = std::string(result.name_of(row));
        worst.add(std::move(noted));
      }
    }
    if (row.verdict == Verdict::pass) continue;
    const bool error = row.verdict == Verdict::error;
    ++(error ? summary.errors : summary.warnings);
    std::optional<std::size_t>& first = error ? first_error : first_warning;
    if (!first) first = i;
    if (!metric) worst.add(note(result, i));
  }
  if (first_error || first_warning)
    summary.first_bad = note(result, first_error ? *first_error : *first_warning);
  summary.worst = worst.take();
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
    if (!rank.advice.empty())
      out += "  " + report::paint("unmatched: ", report::Color::yellow, color) + rank.advice + "\n";
    if (rank.first_bad) out += first_bad(*rank.first_bad, color);
    if (rank.worst.size() > (rank.worst_by.empty() ? 1 : 0)) out += worst(rank.worst, rank.worst_by, color);
    for (const std::string& file : rank.files) out += "  written: " + display(file) + "\n";
  }
  if (!report.html_file.empty()) out += "report: " + display(report.html_file) + "\n";
  for (const std::string& line : report.one_sided) {
    out += report::paint("not compared: ", report::Color::yellow, color) + display(line) + "\n";
  }
  return out;
}

}  // namespace msprobe::compare
