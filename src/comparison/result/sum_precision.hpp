// SPDX-License-Identifier: Apache-2.0
// What the recorded mean and norm of two dumps can tell (docs/statistics.md), for the verdicts of rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "comparison/result/result.hpp"
#include "diagnosis/precision.hpp"

namespace msprobe::compare {

/// Was the statistic recorded, and is it, of a sum, no overflow in the recorder: infinite or undefined though
/// every element is finite?
bool is_known(const Side& side, const Item& item, std::size_t statistic);

enum class SumDifference : std::uint8_t {
  counts,   // or it is Max or Min that is asked for
  rounded,  // no more than recorders, and sums of elements that cancel, are off by
  unknown,  // one side has none, or its own overflowed, while every element is finite
};

class SumPrecision {
 public:
  /// Learns from the rows of parameters. The result must outlive this.
  explicit SumPrecision(const RankResult& result);

  SumDifference of(const Row& row, std::size_t statistic) const;

 private:
  const RankResult& result_;
  diagnosis::StatisticsPrecision precision_;
  diagnosis::ItemTypes target_types_;
  diagnosis::ItemTypes golden_types_;
};

}  // namespace msprobe::compare
