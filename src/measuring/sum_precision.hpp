// SPDX-License-Identifier: Apache-2.0
// What the recorded mean and norm of two dumps can show (docs/statistics.md), for the verdicts of rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "measuring/imports.hpp"
#include "measuring/measured_rank.hpp"

namespace msprobe::measuring {

/// Was the statistic recorded, and is it, of a sum, no overflow in the recorder: infinite or undefined though
/// every element is finite?
bool is_known(const Side& side, const Item& item, std::size_t statistic);

enum class SumDifference : std::uint8_t {
  counts,   // or it is Max or Min that is asked for
  rounded,  // no more than recorders, and sums of elements that cancel, are off by
  unknown,  // one side has none, or its own overflowed, while every element is finite
};

/// Gives the result its precision. Its rows, and the numbers of its items, must not change any more.
void learn_precision(MeasuredRank& result);

/// By the result's precision; without one everything counts.
SumDifference sum_difference(const MeasuredRank& result, const Pair& row, std::size_t statistic);

}  // namespace msprobe::measuring
