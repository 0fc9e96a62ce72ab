// SPDX-License-Identifier: Apache-2.0
#include "compare/dump_tree/rank_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "diagnosis/conclusion.hpp"
#include "diagnosis/sentences.hpp"
#include "dump/side.hpp"
#include "measuring/measures.hpp"
#include "measuring/rank_coverage.hpp"
#include "support/text.hpp"
#include "verdict/result.hpp"

namespace msprobe::compare {
namespace {

using dump::kMax;
using measuring::DifferenceKind;
using measuring::MetricStatus;
using measuring::Mode;
using measuring::TensorMetrics;
using measuring::ValueDifference;
using pairing::Pair;
using verdict::Field;
using verdict::kMetricNames;
using verdict::RankResult;
using verdict::RowRule;

constexpr double kWorstWeight = std::numeric_limits<double>::infinity();

/// False if checksums are compared and one of the items has none.
bool has_checksums(const RankResult& result, const Pair& row) {
  return result.mode != Mode::md5 ||
         (result.target_item(row).has_checksum && result.golden_item(row).has_checksum);
}

/// Weighs a row by its relative error.
void weigh_relative(const ValueDifference& each, NotedRow& noted) {
  const double fraction = measuring::relative_fraction(each);
  noted.weight = std::isnan(fraction) ? kWorstWeight : fraction;
  noted.measure = std::isfinite(fraction) ? fmt::format("{:.4g}%", fraction * 100)
                                          : report::plain_text(measuring::relative_cell(each));
}

double weight_of(const TensorMetrics& metrics, std::size_t metric) {
  const double value = metrics.value[metric];
  const bool is_distance =
      metric == measuring::kEucDist || metric == measuring::kMaxAbs || metric == measuring::kMaxRelative;
  return std::isnan(value) ? kWorstWeight : is_distance ? value : 1 - value;
}

}  // namespace

RankRows::RankRows(std::shared_ptr<const RankResult> result) : result_(std::move(result)), cells_(*result_) {
  for (const verdict::Column& column : cells_.columns()) titles_.push_back(column.title);
}

RankRows RankRows::of(const RankResult& result) {
  return RankRows(std::shared_ptr<const RankResult>(std::shared_ptr<const RankResult>(), &result));
}

std::optional<std::vector<std::string>> RankRows::objects() const {
  if (!result_->diagnosis) return std::nullopt;
  return diagnosis::to_json(diagnosis::conclude({*result_->diagnosis}));
}

RowFacts RankRows::facts(std::size_t index) const {
  const Pair& row = result_->rows[index];
  const bool unreadable = !result_->metrics.empty() && result_->metrics[index].failed;
  const bool left_out = result_->is_left_out(row);
  const bool unknown = measuring::is_unknown(*result_, index);
  const bool measured = row.matched() && result_->target_item(row).is_tensor && !unreadable && !left_out &&
                        !unknown && has_checksums(*result_, row);
  const bool alone = !row.has_golden() && row.reason != pairing::Unmatched::nothing;
  return {result_->verdict(index), alone, !row.has_target(), unreadable, left_out, unknown, measured};
}

/// Weighs a row by the relative error of the norm, or of the maximum if there is no norm.
void RankRows::measure_statistics(const Pair& row, NotedRow& noted) const {
  for (const dump::Statistic which : {dump::kNorm, kMax}) {
    const ValueDifference each = result_->difference(row, which);
    if (std::isnan(measuring::relative_fraction(each)) && each.kind != DifferenceKind::nan) continue;
    weigh_relative(each, noted);
    noted.measure = fmt::format("{} {}", verdict::kRelativeNames[which], noted.measure);
    return;
  }
}

void RankRows::measure_tensors(const TensorMetrics& metrics, NotedRow& noted) const {
  if (metrics.status == MetricStatus::computed) {
    const measuring::Metric which = metrics.is_scalar ? measuring::kMaxRelative : measuring::kCosine;
    noted.measure = fmt::format("{} {:.6g}", kMetricNames[which], metrics.value[which]);
    noted.weight = weight_of(metrics, which);
  } else if (metrics.status != MetricStatus::unsupported) {
    const bool places = metrics.status == MetricStatus::not_applicable;
    noted.measure = places ? "NaN or Inf at other places" : "shapes differ";
    noted.weight = kWorstWeight;
  }
}

/// Finds the number that says most about a row, and how bad it is.
void RankRows::measure(std::size_t index, std::optional<RowRule> rule, NotedRow& noted) const {
  const Pair& row = result_->rows[index];
  if (!row.matched() || result_->mode == Mode::md5) return;
  if (result_->mode == Mode::tensor) {
    measure_tensors(result_->metrics[index], noted);
  } else {
    measure_statistics(row, noted);
  }
  // The property that the rule judges says more than any other number.
  const dump::Side& target = result_->target;
  const dump::Side& golden = result_->golden;
  const dump::Item& item = result_->target_item(row);
  const dump::Item& bench = result_->golden_item(row);
  if (rule == RowRule::dtype) {
    noted.measure = fmt::format("dtype {}, not {}", target.text(item.dtype), golden.text(bench.dtype));
  } else if (rule == RowRule::shape) {
    noted.measure = fmt::format("shape {}, not {}", target.text(item.shape), golden.text(bench.shape));
  } else if (rule == RowRule::scalar_argument) {
    noted.measure = fmt::format("{}, not {}", dump::to_text(item.statistics[kMax], target.pool),
                                dump::to_text(bench.statistics[kMax], golden.pool));
  } else if (rule == RowRule::ratio_drop) {
    noted.measure = fmt::format("{} {:.4g}", kMetricNames[measuring::kOneThousandth],
                                result_->metrics[index].value[measuring::kOneThousandth]);
  }
}

void RankRows::describe_row(std::size_t index, NotedRow& noted) const {
  noted.name = std::string(result_->name_of(result_->rows[index]));
  noted.verdict = result_->verdict(index);
  noted.index = index;
}

NotedRow RankRows::note(std::size_t index) const {
  NotedRow noted;
  describe_row(index, noted);
  const std::optional<RowRule> rule = verdict::decisive_rule(result_->findings(index));
  if (rule) noted.reason = verdict::words_of(*rule, *result_, index);
  measure(index, rule, noted);
  return noted;
}

std::vector<std::string> RankRows::metrics() const {
  std::vector<std::string> names;
  for (const verdict::Column& column : cells_.columns()) {
    if (column.field == Field::metric || column.field == Field::difference || column.field == Field::relative)
      names.push_back(column.title);
  }
  return names;
}

std::vector<std::string> RankRows::all_metrics() {
  std::vector<std::string> names(kMetricNames.begin(), kMetricNames.end());
  names.insert(names.end(), verdict::kDifferenceNames.begin(), verdict::kDifferenceNames.end());
  for (const char* name : verdict::kRelativeNames) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.emplace_back(name);
  }
  return names;
}

bool RankRows::weigh(std::size_t index, std::size_t metric, NotedRow& noted) const {
  const Pair& row = result_->rows[index];
  if (!row.matched()) return false;
  if (result_->mode == Mode::tensor) {
    const TensorMetrics& metrics = result_->metrics[index];
    if (!metrics.has(metric)) return false;
    noted.weight = weight_of(metrics, metric);
    noted.measure = fmt::format("{:.6g}", metrics.value[metric]);
  } else {
    const ValueDifference each = result_->difference(row, metric % dump::kStatistics);
    if (each.kind == DifferenceKind::missing || each.kind == DifferenceKind::differ) return false;
    if (metric < dump::kStatistics) {
      const bool finite = each.kind == DifferenceKind::zero || each.kind == DifferenceKind::number;
      noted.weight = finite ? std::abs(each.difference) : kWorstWeight;
      noted.measure = report::plain_text(measuring::difference_cell(each));
    } else {
      weigh_relative(each, noted);
    }
  }
  if (!(noted.weight > 0)) return false;
  describe_row(index, noted);
  return true;
}

}  // namespace msprobe::compare
