// SPDX-License-Identifier: Apache-2.0
// Which node of the reference's graph belongs to which node under test (docs/rules.md, "Pairs of nodes").
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model_tree/tree.hpp"
#include "pairing/alignment.hpp"

namespace msprobe::graph {

/// Partners of both sides by node; kNoNode for those that have none.
struct NodePairs {
  std::vector<model_tree::NodeIndex> golden_of;
  std::vector<model_tree::NodeIndex> target_of;
  std::vector<std::string> warnings;
};

/// Numbers of entries by node; kNoEntry for a node without data.
inline constexpr std::uint32_t kNoEntry = UINT32_MAX;
using NodeEntries = std::vector<std::uint32_t>;

/// Both trees, and what their nodes hold.
struct TreePair {
  const model_tree::ModelTree& target;
  const model_tree::ModelTree& golden;
  const NodeEntries& target_entries;
  const NodeEntries& golden_entries;
};

/// Nodes of one name; with `below_pairs` only below parents that are paired, too.
NodePairs pair_names(const TreePair& trees, bool below_pairs);

/// Modules by name, the operations directly below them in the order of their calls, whatever their numbers
/// (-fm), with a warning where one side calls an operation more often. With `across_ranks` operations
/// between modules pair whichever of the merged ranks ran them.
NodePairs pair_calls(const TreePair& trees, bool across_ranks = false);

/// Nodes with data as `golden_of` has it, by entries (kNoEntry: none); those without data by name.
NodePairs pair_entries(const TreePair& trees, const std::vector<std::uint32_t>& golden_of);

/// The same, but containers without data go by what they hold.
NodePairs pair_aligned(const TreePair& trees, const std::vector<std::uint32_t>& golden_of);

/// Golden top nodes take the micro step of their partners, and keep theirs without one; all nodes below
/// follow.
void pair_micro_steps(const model_tree::ModelTree& target, model_tree::ModelTree& golden,
                      const NodePairs& pairs);

}  // namespace msprobe::graph
