// SPDX-License-Identifier: Apache-2.0
// Ranks of one run become the model that they are parts of (docs/rules.md, "Ranks merged into one graph").
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "graph/merge/merge_steps.hpp"
#include "graph/merge/parallel_plan.hpp"

namespace msprobe {
class Progress;
}

namespace msprobe::graph {

struct MergedRanks {
  std::vector<MergeRank> ranks;  // must stay where they are
  MergeGroup graphs;             // in the order of their first ranks
  std::vector<std::string> warnings;
  std::vector<std::string> replicas;  // values that ranks should hold alike, and do not
};

/// Reads the ranks of a folder; `progress` may be null. Throws IoError, FormatError, UsageError.
std::unique_ptr<MergedRanks> read_ranks(const std::string& folder, Progress* progress);

/// Merges them. `side` begins a message of what is wrong with the plan.
void merge_ranks(MergedRanks& merged, const ParallelPlan& plan, const std::string& side);

}  // namespace msprobe::graph
