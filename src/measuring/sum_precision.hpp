// SPDX-License-Identifier: Apache-2.0
// Decides which differences of recorded mean and norm are real (docs/statistics.md), for the verdicts of
// rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "dump/side.hpp"
#include "measuring/measured_rank.hpp"

namespace msprobe::measuring {

/// Was the statistic recorded? A sum that is infinite or undefined although every element is finite
/// overflowed in the recorder, and counts as not recorded.
bool is_known(const dump::Side& side, const dump::Item& item, std::size_t statistic);

enum class SumDifference : std::uint8_t {
  counts,   // also for Max and Min
  rounded,  // within the rounding of recorders and of sums whose elements cancel
  unknown,  // a side has no sum, or its sum overflowed while every element is finite
};

/// Sets the precision of the result. Its rows, and the numbers of its items, must not change afterwards.
void learn_precision(MeasuredRank& result);

/// Uses the result's precision; without one every difference counts.
SumDifference sum_difference(const MeasuredRank& result, const pairing::Pair& row, std::size_t statistic);

}  // namespace msprobe::measuring
