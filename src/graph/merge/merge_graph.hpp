// SPDX-License-Identifier: Apache-2.0
// The graph of a rank during a merge: nodes get other names and places, nodes of other ranks join them, and
// each node records which data make up its own (docs/rules.md, "Ranks merged into one graph").
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "graph/rank_graph.hpp"
#include "model_tree/tree.hpp"

namespace msprobe::graph {

using model_tree::kNoNode;
using model_tree::kRoot;
using model_tree::NodeIndex;
using model_tree::NodeType;

/// A rank that was read.
struct MergeRank {
  std::int64_t number = 0;
  RankGraph graph;
};

class MergeGraph;

/// How a merge combines the data of a node and of its partners on the other ranks of its group.
struct MergedData {
  struct Partner {
    std::shared_ptr<const MergeGraph> graph;
    NodeIndex node = kNoNode;
  };
  std::vector<Partner> partners;
  std::vector<std::int64_t> ranks;  // all of them, for messages
  NodeIndex reduced = kNoNode;      // the sum over the ranks, which becomes the first output
};

struct MergeNode {
  /// The entry of one rank's dump.json by its number; 0 means no entry.
  struct RankEntry {
    const MergeRank* rank = nullptr;
    std::uint32_t entry = 0;
  };

  std::string name;
  NodeType type = NodeType::module;
  NodeIndex parent = kNoNode;
  std::uint32_t micro_step = 0;
  std::uint32_t stack = 0;  // number in the tree of its rank
  std::vector<NodeIndex> children;
  RankEntry own;              // always has a rank
  RankEntry inputs, outputs;  // if they have a rank, they replace those of `own`
  std::unique_ptr<MergedData> joint;
};

/// Nodes have numbers in the order of their creation; the root is kRoot.
class MergeGraph {
 public:
  explicit MergeGraph(const MergeRank& rank);

  std::int64_t rank() const { return rank_.number; }
  const MergeRank& main_rank() const { return rank_; }
  std::size_t size() const { return nodes_.size(); }
  MergeNode& node(NodeIndex index) { return nodes_[index]; }
  const MergeNode& node(NodeIndex index) const { return nodes_[index]; }
  /// kNoNode if no node has that name.
  NodeIndex find(std::string_view name) const;
  /// A node without a place in the tree.
  NodeIndex add(std::string name, NodeType type, const MergeNode::RankEntry& own);
  void rename(NodeIndex index, std::string name);
  /// Copies the node and all below it from another graph, without a place in the tree.
  NodeIndex copy(const MergeGraph& from, NodeIndex index);
  void attach(NodeIndex child, NodeIndex parent);
  /// Parents of layers that were joined.
  std::vector<NodeIndex> joined_parents;

  /// Gives the operations of a copied part the numbers of their ranks.
  void name_apis_by_rank(NodeIndex top);

  /// The node and all below it, parents first.
  std::vector<NodeIndex> below(NodeIndex index) const;

 private:
  void know(NodeIndex index);

  const MergeRank& rank_;
  std::deque<MergeNode> nodes_;  // a deque, since by_name_ refers to the names
  std::unordered_map<std::string_view, NodeIndex> by_name_;
};

/// For each node of one graph, the node of the same name and the same ancestors in another graph, by number;
/// kNoNode if there is no such node. `name_there` returns the name of a node in the other graph.
template <typename NameThere>
std::vector<NodeIndex> namesakes(const MergeGraph& graph, const MergeGraph& other,
                                 const NameThere& name_there) {
  std::vector<NodeIndex> found(graph.size(), kNoNode);
  found[kRoot] = kRoot;
  for (const NodeIndex index : graph.below(kRoot)) {
    const MergeNode& node = graph.node(index);
    if (index == kRoot || found[node.parent] == kNoNode) continue;
    const NodeIndex there = other.find(name_there(node));
    if (there != kNoNode && other.node(there).parent == found[node.parent]) found[index] = there;
  }
  return found;
}

/// The name with `_rank{number}` after the name of the operation: `Torch.square_rank1.0.forward`.
std::string name_with_rank(std::string_view name, std::int64_t rank);
bool is_name_with_rank(std::string_view name);

/// Is the node a module of the model?
inline bool is_of_model(const MergeNode& node) {
  return node.type == NodeType::module && node.name != "optimizer" && node.name != "clip_grad";
}

}  // namespace msprobe::graph
