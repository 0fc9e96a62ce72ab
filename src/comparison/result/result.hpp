// SPDX-License-Identifier: Apache-2.0
// What comparing one pair of ranks yields, before anyone writes it down, and the steps that it takes:
// measured, judged, put into words.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comparison/joining/joins.hpp"
#include "comparison/matching/consistent.hpp"
#include "comparison/matching/matching.hpp"
#include "comparison/metrics/statistics_difference.hpp"
#include "comparison/metrics/tensor_factors.hpp"
#include "comparison/metrics/tensor_metrics.hpp"
#include "comparison/result/finding.hpp"
#include "comparison/result/rows.hpp"
#include "comparison/result/traits.hpp"
#include "comparison/rules/rules.hpp"
#include "comparison/side.hpp"
#include "diagnosis/rank_diagnosis.hpp"
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
  std::string step;         // label of the step folder; empty unless several steps were compared
  std::string rank;         // label of the target's rank folder; empty for two files
  std::int64_t number = 0;  // of the rank; 0 if it has none
  Mode mode = Mode::statistics;
  RankTraits traits;
  Thresholds thresholds;                      // that the findings speak of
  std::vector<std::string> framework_frames;  // see dump::user_frame(); what is not one is the user's
  std::optional<Backend> consistent;          // training against inference, and what trained
  Side target;
  Side golden;
  std::shared_ptr<Joins> target_joins;  // of merged ranks, by item; null without
  std::shared_ptr<Joins> golden_joins;
  std::shared_ptr<const dump::ConstructBeside> target_construct;  // null for what has none
  std::shared_ptr<const dump::ConstructBeside> golden_construct;
  /// What recorders make of sums; null where these count as they are.
  std::shared_ptr<const diagnosis::StatisticsPrecision> precision;
  /// What made the rows, or else what the diagnosis went by; null without either.
  std::shared_ptr<const diagnosis::Alignment> alignment;
  std::shared_ptr<const diagnosis::RankDiagnosis> diagnosis;  // null: it was not asked for
  std::vector<Row> rows;                                      // in target order; some have no target item
  std::vector<TensorMetrics> metrics;                         // one a row in tensor mode, else empty
  std::shared_ptr<const TensorFactors> factors;  // of tensors, of both sides; null: none have any
  std::uint32_t entries_reached = UINT32_MAX;    // of the target; rows of those behind are left out (--first)
  std::uint64_t golden_only = 0;
  bool by_xor = false;          // checksums are words, not CRC-32
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
  bool is_left_out(const Row& row) const {
    return row.has_target() && target_item(row).api >= entries_reached;
  }
  /// Of one statistic; `missing` for a row without partner, and for one that is left out.
  ValueDifference difference(const Row& row, std::size_t statistic) const {
    if (!row.matched() || is_left_out(row)) return {.kind = DifferenceKind::missing};
    return compare::difference(target_item(row).statistics[statistic], target.pool,
                               golden_item(row).statistics[statistic], golden.pool, traits.measure);
  }
};

/// Gives every row its verdict (docs/rules.md, "Verdicts"): the rules' findings come behind those it has.
void judge(RankResult& result, const Rules& rules);

/// One for each finding, those of a warning or error with that word in front.
std::vector<std::string> messages_of(const RankResult& result, std::size_t row);
/// What made the row's verdict: the first finding of that level. Nothing for a row that passes.
std::optional<Rule> decisive_rule(const Row& row);
/// The words of a finding, without its level.
std::string words_of(Rule rule, const RankResult& result, std::size_t row);

}  // namespace msprobe::compare
