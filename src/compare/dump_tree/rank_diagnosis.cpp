// SPDX-License-Identifier: Apache-2.0
#include "compare/dump_tree/rank_diagnosis.hpp"

#include <optional>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace msprobe::compare {
namespace {

constexpr std::uint32_t kNoRow = UINT32_MAX;

/// By a mapping: entries belong together if rows of theirs do; of several partners the first counts. Entries
/// without rows go by name.
diagnosis::Alignment alignment_of_rows(const RankResult& result) {
  diagnosis::Alignment alignment;
  alignment.golden_of.assign(result.target.apis.size(), diagnosis::kNone);
  alignment.target_of.assign(result.golden.apis.size(), diagnosis::kNone);
  const auto pair = [&](std::uint32_t ours, std::uint32_t theirs) {
    if (alignment.golden_of[ours] != diagnosis::kNone || alignment.target_of[theirs] != diagnosis::kNone)
      return;
    alignment.golden_of[ours] = theirs;
    alignment.target_of[theirs] = ours;
  };
  for (const Row& row : result.rows) {
    if (row.matched()) pair(result.target_item(row).api, result.golden_item(row).api);
  }
  std::unordered_map<std::string_view, std::uint32_t> empty;
  for (std::uint32_t i = 0; i < result.golden.apis.size(); ++i) {
    if (result.golden.apis[i].count == 0) empty.emplace(result.golden.text(result.golden.apis[i].name), i);
  }
  for (std::uint32_t i = 0; i < result.target.apis.size(); ++i) {
    if (result.target.apis[i].count != 0) continue;
    if (const auto found = empty.find(result.target.text(result.target.apis[i].name)); found != empty.end())
      pair(i, found->second);
  }
  return alignment;
}

/// The first row of each item under test.
std::vector<std::uint32_t> rows_of_items(const RankResult& result) {
  std::vector<std::uint32_t> rows(result.target.items.size(), kNoRow);
  for (std::size_t i = result.rows.size(); i-- > 0;) {
    if (result.rows[i].has_target()) rows[result.rows[i].pair.target] = static_cast<std::uint32_t>(i);
  }
  return rows;
}

}  // namespace

void diagnose(RankResult& result, const DiagnosisOptions& options, const Rules& rules, bool mapped,
              RankHistory& past) {
  diagnosis::RankPair pair;
  pair.target = &result.target;
  pair.golden = &result.golden;
  std::shared_ptr<const diagnosis::Alignment> alignment = result.alignment;
  if (!alignment) {
    alignment = std::make_shared<const diagnosis::Alignment>(
        mapped ? alignment_of_rows(result) : diagnosis::align(result.target, result.golden));
  }
  pair.alignment = alignment.get();
  pair.step = result.step;
  pair.rank = result.rank;
  pair.number = result.number;
  pair.replay_mode = options.replay;
  pair.framework_frames = rules.framework_frames;
  if (result.target_construct) pair.target_construct = &result.target_construct->table();
  std::vector<std::uint32_t> rows;
  if (result.mode == Mode::tensor) {
    rows = rows_of_items(result);
    pair.tensors = [&](std::uint32_t item, std::uint32_t golden) -> std::optional<diagnosis::Measure> {
      const std::uint32_t row = rows[item];
      if (row == kNoRow || result.rows[row].pair.golden != golden) return std::nullopt;
      const TensorMetrics& metrics = result.metrics[row];
      return metrics.measure.known ? std::optional(metrics.measure) : std::nullopt;
    };
  }
  result.diagnosis =
      std::make_shared<const diagnosis::RankDiagnosis>(diagnosis::diagnose_rank(pair, past.history));
}

}  // namespace msprobe::compare
