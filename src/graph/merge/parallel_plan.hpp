// SPDX-License-Identifier: Apache-2.0
// How a model was split, and which ranks form a group (docs/rules.md, "Groups").
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
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

/// UsageError if the sizes contradict each other or the number of ranks.
void check_plan(const ParallelPlan& plan, std::size_t ranks, const std::string& side);

/// Does the call combine values of all ranks of a group?
bool is_reduction(std::string_view name);

/// The ranks of the process group that a communication call names by keyword; empty if it names none.
std::vector<std::int64_t> ranks_of_call(const dump::Entry& entry);

struct ParallelGroups {
  RankGroups tp;
  RankGroups pp;
  std::vector<std::string> warnings;
};
/// Finds the groups by the recorded communication; if that is missing or contradicts the plan, by the plan.
ParallelGroups find_groups(const ParallelPlan& plan, const std::vector<MergeRank>& ranks);

}  // namespace msprobe::graph
