// SPDX-License-Identifier: Apache-2.0
// The results of many ranks put side by side: one table for each index, one column for each rank.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "merge_result/rank_values.hpp"
#include "report/writers.hpp"

namespace msprobe::merge_result {

struct MergeOptions {
  std::string input;
  std::string output;
  std::string config;
  std::vector<report::Format> formats = {report::Format::xlsx};
};

struct MergeReport {
  std::vector<std::int64_t> ranks;  // that were merged
  std::vector<std::string> warnings;
  bool any_unreadable = false;
  std::uint64_t rows = 0;
  std::vector<std::string> indices;
  std::vector<std::string> files;
};

/// The ranks that can be merged, with their rows joined by name: those of the first rank in their order, then
/// those that only later ones have.
class Merged {
 public:
  /// Tells in `report` which ranks are left out, and why. FormatError if nothing remains.
  Merged(std::vector<RankValues> ranks, MergeReport& report);

  std::unique_ptr<report::Table> table(std::size_t index) const;

 private:
  friend class MergedTable;
  std::vector<RankValues> ranks_;
  std::vector<std::string_view> names_;
  std::vector<std::vector<std::uint32_t>> rows_;  // of each rank: its row for each name, or kNone
  static constexpr std::uint32_t kNone = UINT32_MAX;
};

/// Reads, merges, writes.
MergeReport merge(const MergeOptions& options);

}  // namespace msprobe::merge_result
