// SPDX-License-Identifier: Apache-2.0
// A pair of ranks whose rows are measured. The verdicts and the diagnosis read it without changing it, so
// they can run at the same time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "measuring/choose_mode.hpp"
#include "measuring/precision.hpp"
#include "measuring/python_rules.hpp"
#include "measuring/statistics_difference.hpp"
#include "measuring/tensor_factors.hpp"
#include "measuring/tensor_metrics.hpp"
#include "pairing/paired_rank.hpp"

namespace msprobe::measuring {

struct MeasuredRank : pairing::PairedRank {
  Mode mode = Mode::statistics;
  PythonRules python;
  bool merged_ranks = false;  // shapes are those of parts; `_rank3` is not a part of an operation's name
  /// The rounding of sums by the recorders; null if sums are compared exactly.
  std::shared_ptr<const measuring::StatisticsPrecision> precision;
  std::vector<TensorMetrics> metrics;            // one per row in tensor mode, else empty
  std::shared_ptr<const TensorFactors> factors;  // factors for tensors of both sides; null: no factors
  std::uint32_t entries_reached = UINT32_MAX;  // of the target; rows of later entries are left out (--first)

  bool is_left_out(const pairing::Pair& row) const {
    return row.has_target() && target_item(row).api >= entries_reached;
  }
  /// The difference of one statistic; `missing` for a row that has no partner or is left out.
  ValueDifference difference(const pairing::Pair& row, std::size_t statistic) const {
    if (!row.matched() || is_left_out(row)) return {.kind = DifferenceKind::missing};
    return measuring::difference(target_item(row).statistics[statistic], target.pool,
                                 golden_item(row).statistics[statistic], golden.pool, python);
  }
};

}  // namespace msprobe::measuring
