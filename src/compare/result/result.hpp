// SPDX-License-Identifier: Apache-2.0
// What comparing one pair of ranks yields, before anyone writes it down.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compare/matching/consistent.hpp"
#include "compare/matching/matching.hpp"
#include "compare/metrics/tensor_metrics.hpp"
#include "compare/result/finding.hpp"
#include "compare/result/rows.hpp"
#include "compare/result/traits.hpp"
#include "compare/rules/rules.hpp"
#include "compare/side.hpp"
#include "dump/construct_json.hpp"

namespace msprobe::compare {

struct Row {
  Pair pair;
  Findings findings;

  /// Rows without a target item tell of what only the reference has; only some comparisons give them
  /// (--consistent_check).
  bool has_target() const { return pair.target != kUnmatched; }
  bool has_golden() const { return pair.golden != kUnmatched; }
  bool matched() const { return has_target() && has_golden(); }
  Verdict verdict() const { return findings.verdict(); }
};

struct RankResult {
  std::string step;  // label of the step folder; empty unless several steps were compared
  std::string rank;  // label of the target's rank folder; empty for two files
  Mode mode = Mode::statistics;
  RankTraits traits;
  Thresholds thresholds;              // that the findings speak of
  std::optional<Backend> consistent;  // training against inference, and what trained
  Side target;
  Side golden;
  std::shared_ptr<const dump::ConstructBeside> target_construct;  // null for what has none
  std::shared_ptr<const dump::ConstructBeside> golden_construct;
  std::vector<Row> rows;               // in target order; some have no target item
  std::vector<TensorMetrics> metrics;  // one a row in tensor mode, else empty
  std::uint64_t golden_only = 0;
  bool checksums_lost = false;  // no row has one, and all count as different (the Python tool's fuzzy match)

  /// For rows that have one.
  const Item& target_item(const Row& row) const { return target.items[row.pair.target]; }
  const Item& golden_item(const Row& row) const { return golden.items[row.pair.golden]; }
  /// Null if the row has none.
  const Item* find_target(const Row& row) const { return row.has_target() ? &target_item(row) : nullptr; }
  const Item* find_golden(const Row& row) const { return row.has_golden() ? &golden_item(row) : nullptr; }
  /// The target's name, or the reference's where there is no target.
  std::string_view name_of(const Row& row) const {
    return row.has_target() ? target.name(target_item(row)) : golden.name(golden_item(row));
  }
};

}  // namespace msprobe::compare
