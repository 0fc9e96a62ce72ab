// SPDX-License-Identifier: Apache-2.0
#include "comparison/result/sum_precision.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "diagnosis/measures.hpp"

namespace msprobe::compare {
namespace {

bool is_sum(std::size_t statistic) {
  return statistic == kMean || statistic == kNorm;
}

double number(const Side& side, const Item& item, std::size_t statistic) {
  return diagnosis::number_of(side, item, static_cast<Statistic>(statistic));
}

bool has_finite_elements(const Side& side, const Item& item) {
  return std::isfinite(number(side, item, kMax)) && std::isfinite(number(side, item, kMin));
}

}  // namespace

bool is_known(const Side& side, const Item& item, std::size_t statistic) {
  if (!dump::is_recorded(item.statistics[statistic])) return false;
  return !is_sum(statistic) || std::isfinite(number(side, item, statistic)) ||
         !has_finite_elements(side, item);
}

SumPrecision::SumPrecision(const RankResult& result)
    : result_(result),
      precision_(result.target, result.golden),
      target_types_(result.target),
      golden_types_(result.golden) {
  // Parameters are what both runs have alike, if anything is.
  for (const Row& row : result.rows) {
    if (row.matched() && result.target_item(row).state == State::parameters)
      precision_.learn(result.target, result.target_item(row), result.golden, result.golden_item(row));
  }
  precision_.settle();
}

SumDifference SumPrecision::of(const Row& row, std::size_t statistic) const {
  if (!row.matched() || !is_sum(statistic)) return SumDifference::counts;
  const Item& item = result_.target_item(row);
  const Item& golden = result_.golden_item(row);
  if (!has_finite_elements(result_.target, item) || !has_finite_elements(result_.golden, golden))
    return SumDifference::counts;
  const double ours = number(result_.target, item, statistic);
  const double theirs = number(result_.golden, golden, statistic);
  if (!std::isfinite(ours) || !std::isfinite(theirs)) return SumDifference::unknown;
  const diagnosis::KnownType dtype = golden_types_.of(golden);
  const std::uint64_t elements = diagnosis::elements_of(result_.golden.text(golden.shape));
  const diagnosis::Tolerance tolerance = precision_.of(target_types_.of(item), dtype, elements);
  double allowed = tolerance.norm * theirs;
  if (statistic == kMean) {
    const double rms = number(result_.golden, golden, kNorm) / std::sqrt(static_cast<double>(elements));
    // The mean of elements that cancel is the sum of their roundings.
    const double of_rms = std::max(tolerance.mean_sum, dtype ? tensor::unit_roundoff(*dtype) : 0);
    allowed = tolerance.mean * std::fabs(theirs) + (std::isfinite(rms) ? of_rms * rms : 0);
  }
  return std::fabs(ours - theirs) <= allowed ? SumDifference::rounded : SumDifference::counts;
}

}  // namespace msprobe::compare
