// SPDX-License-Identifier: Apache-2.0
#include "measuring/sum_precision.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "measuring/measures.hpp"
#include "measuring/precision.hpp"
#include "pairing/alignment.hpp"

namespace msprobe::measuring {
namespace {

using dump::Item;
using dump::Side;

bool is_sum(std::size_t statistic) {
  return statistic == dump::kMean || statistic == dump::kNorm;
}

double number(const Side& side, const Item& item, std::size_t statistic) {
  return measuring::number_of(side, item, static_cast<dump::Statistic>(statistic));
}

bool has_finite_elements(const Side& side, const Item& item) {
  return std::isfinite(number(side, item, dump::kMax)) && std::isfinite(number(side, item, dump::kMin));
}

}  // namespace

bool is_known(const Side& side, const Item& item, std::size_t statistic) {
  if (!dump::is_recorded(item.statistics[statistic])) return false;
  return !is_sum(statistic) || std::isfinite(number(side, item, statistic)) ||
         !has_finite_elements(side, item);
}

void learn_precision(MeasuredRank& result) {
  std::vector<std::uint32_t> golden_item(result.target.items.size(), pairing::kNone);
  for (const pairing::Pair& row : result.rows) {
    if (row.matched()) golden_item[row.target] = row.golden;
  }
  result.precision =
      std::make_shared<const measuring::StatisticsPrecision>(result.target, result.golden, golden_item);
}

SumDifference sum_difference(const MeasuredRank& result, const pairing::Pair& row, std::size_t statistic) {
  if (!result.precision || !row.matched() || !is_sum(statistic)) return SumDifference::counts;
  const Item& item = result.target_item(row);
  const Item& golden = result.golden_item(row);
  if (!has_finite_elements(result.target, item) || !has_finite_elements(result.golden, golden))
    return SumDifference::counts;
  const double ours = number(result.target, item, statistic);
  const double theirs = number(result.golden, golden, statistic);
  if (!std::isfinite(ours) || !std::isfinite(theirs)) return SumDifference::unknown;
  const measuring::Tolerance tolerance = result.precision->of(result.target, item, result.golden, golden);
  double allowed = tolerance.norm * theirs;
  if (statistic == dump::kMean) {
    const auto elements = static_cast<double>(measuring::elements_of(result.golden.text(golden.shape)));
    const double rms = number(result.golden, golden, dump::kNorm) / std::sqrt(elements);
    // The mean of elements that cancel is the sum of their roundings.
    const double rounded = measuring::unit_roundoff(result.golden.text(golden.dtype));
    const double of_rms = std::max(tolerance.mean_sum, rounded);
    allowed = tolerance.mean * std::fabs(theirs) + (std::isfinite(rms) ? of_rms * rms : 0);
  }
  return std::fabs(ours - theirs) <= allowed ? SumDifference::rounded : SumDifference::counts;
}

}  // namespace msprobe::measuring
