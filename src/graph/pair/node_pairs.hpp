// SPDX-License-Identifier: Apache-2.0
// Pairs the nodes under test with nodes of the golden graph (docs/rules.md, "Pairs of nodes").
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model_tree/tree.hpp"
#include "pairing/alignment.hpp"

namespace msprobe::graph {

/// The partners of the nodes of both sides, by node number; kNoNode for nodes without a partner.
struct NodePairs {
  std::vector<model_tree::NodeIndex> golden_of;
  std::vector<model_tree::NodeIndex> target_of;
  std::vector<std::string> warnings;
};

/// Numbers of entries by node; kNoEntry for a node without data.
inline constexpr std::uint32_t kNoEntry = UINT32_MAX;
using NodeEntries = std::vector<std::uint32_t>;

/// Both trees, and the entries of their nodes.
struct TreePair {
  const model_tree::ModelTree& target;
  const model_tree::ModelTree& golden;
  const NodeEntries& target_entries;
  const NodeEntries& golden_entries;
};

/// Pairs nodes of the same name; with `below_pairs` only below parents that are paired, too.
NodePairs pair_names(const TreePair& trees, bool below_pairs);

/// Pairs modules by name, and the operations directly below them in the order of their calls, regardless of
/// their numbers (-fm), with a warning if one side calls an operation more often. With `across_ranks`,
/// operations between modules pair regardless of which merged rank ran them.
NodePairs pair_calls(const TreePair& trees, bool across_ranks = false);

/// Pairs nodes with data by the entry numbers in `golden_of` (kNoEntry: no partner), and nodes without data
/// by name.
NodePairs pair_entries(const TreePair& trees, const std::vector<std::uint32_t>& golden_of);

/// Like pair_entries(), but containers without data pair by the nodes that they hold.
NodePairs pair_aligned(const TreePair& trees, const std::vector<std::uint32_t>& golden_of);

/// Gives golden top nodes the micro step of their partners; a node without a partner keeps its own. All nodes
/// below follow.
void pair_micro_steps(const model_tree::ModelTree& target, model_tree::ModelTree& golden,
                      const NodePairs& pairs);

}  // namespace msprobe::graph
