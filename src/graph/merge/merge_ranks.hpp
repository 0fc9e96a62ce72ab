// SPDX-License-Identifier: Apache-2.0
// Merges the ranks of one run into the model that they are parts of (docs/rules.md, "Ranks merged into one
// graph").
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
  std::vector<MergeRank> ranks;  // must not move: the graphs refer to them
  MergeGroup graphs;             // in the order of their first ranks
  std::vector<std::string> warnings;
  std::vector<std::string> replicas;  // values that should be equal on all ranks but differ
};

/// Reads the ranks of a folder; `progress` may be null. Throws IoError, FormatError, UsageError.
std::unique_ptr<MergedRanks> read_ranks(const std::string& folder, Progress* progress);

/// Merges the ranks. Messages about a wrong plan begin with `side`.
void merge_ranks(MergedRanks& merged, const ParallelPlan& plan, const std::string& side);

}  // namespace msprobe::graph
