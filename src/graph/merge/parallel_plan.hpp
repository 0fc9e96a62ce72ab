// SPDX-License-Identifier: Apache-2.0
// How a model was split, and which ranks make up a group (docs/rules.md, "Groups").
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "dump/entry.hpp"
#include "graph/merge/merge_graph.hpp"
#include "graph/merge/merge_steps.hpp"

namespace msprobe::graph {

struct ParallelPlan {
  int rank_size = 0;
  int tp = 0;
  int pp = 0;
  int vpp = 1;
  std::string order = "tp-cp-ep-dp-pp";
};

/// UsageError for sizes that do not go together, or with the number of ranks.
void check_plan(const ParallelPlan& plan, std::size_t ranks, const std::string& side);

/// The ranks of the process group that a call of communication names by keyword; empty if there is none.
std::vector<std::int64_t> ranks_of_call(const dump::Entry& entry);

struct ParallelGroups {
  RankGroups tp;
  RankGroups pp;
  std::vector<std::string> warnings;
};
/// By the communication that the ranks recorded; where that says nothing or something else than the plan, by
/// the plan.
ParallelGroups find_groups(const ParallelPlan& plan, const std::vector<MergeRank>& ranks);

}  // namespace msprobe::graph
