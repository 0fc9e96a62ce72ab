// SPDX-License-Identifier: Apache-2.0
// Puts the results of many ranks side by side: one table for each index, one column for each rank.
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

/// The ranks that can be merged, with their rows joined by name: the rows of the first rank in their order,
/// then those that only later ranks have.
class Merged {
 public:
  /// Reports in `report` which ranks are left out, and why. Throws FormatError if no rank remains.
  Merged(std::vector<RankValues> ranks, MergeReport& report);

  std::unique_ptr<report::Table> table(std::size_t index) const;

 private:
  friend class MergedTable;
  std::vector<RankValues> ranks_;
  std::vector<std::string_view> names_;
  std::vector<std::vector<std::uint32_t>> rows_;  // by rank: its row for each name, or kNone
  static constexpr std::uint32_t kNone = UINT32_MAX;
};

/// Reads, merges and writes the results.
MergeReport merge(const MergeOptions& options);

}  // namespace msprobe::merge_result
