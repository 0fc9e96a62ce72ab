// SPDX-License-Identifier: Apache-2.0
#include "comparison/result/sum_precision.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "diagnosis/measures.hpp"

namespace msprobe::compare {
namespace {

struct Numbers {
  Numbers(const Side& side, const Item& item, std::size_t statistic)
      : asked(diagnosis::number_of(side, item, static_cast<Statistic>(statistic))),
        norm(diagnosis::number_of(side, item, kNorm)),
        finite(std::isfinite(diagnosis::number_of(side, item, kMax)) &&
               std::isfinite(diagnosis::number_of(side, item, kMin))) {}
  double asked;
  double norm;
  bool finite;  // all elements are
};

}  // namespace

SumPrecision::SumPrecision(const RankResult& result)
    : result_(result), precision_(result.target, result.golden) {
  // Parameters are what both runs have alike, if anything is.
  for (const Row& row : result.rows) {
    if (row.matched() && result.target_item(row).state == State::parameters)
      precision_.learn(result.target, result.target_item(row), result.golden, result.golden_item(row));
  }
  precision_.settle();
}

SumDifference SumPrecision::of(const Row& row, std::size_t statistic) const {
  if (!row.matched() || (statistic != kMean && statistic != kNorm)) return SumDifference::counts;
  const Item& golden = result_.golden_item(row);
  const Numbers ours(result_.target, result_.target_item(row), statistic);
  const Numbers theirs(result_.golden, golden, statistic);
  if (!ours.finite || !theirs.finite) return SumDifference::counts;
  if (!std::isfinite(ours.asked) || !std::isfinite(theirs.asked)) return SumDifference::unknown;
  const std::string_view dtype = result_.golden.text(golden.dtype);
  const std::uint64_t elements = diagnosis::elements_of(result_.golden.text(golden.shape));
  const diagnosis::Tolerance tolerance =
      precision_.of(result_.target.text(result_.target_item(row).dtype), dtype, elements);
  double allowed = tolerance.norm * theirs.asked;
  if (statistic == kMean) {
    const double rms = theirs.norm / std::sqrt(static_cast<double>(elements));
    // The mean of elements that cancel is the sum of their roundings.
    const double of_rms = std::max(tolerance.mean_sum, diagnosis::unit_roundoff(dtype));
    allowed = tolerance.mean * std::fabs(theirs.asked) + (std::isfinite(rms) ? of_rms * rms : 0);
  }
  return std::fabs(ours.asked - theirs.asked) <= allowed ? SumDifference::rounded : SumDifference::counts;
}

}  // namespace msprobe::compare
