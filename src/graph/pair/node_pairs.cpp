// SPDX-License-Identifier: Apache-2.0
#include "graph/pair/node_pairs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "dump/names.hpp"
#include "support/ascii.hpp"
#include "support/text.hpp"

namespace msprobe::graph {
namespace {

using model_tree::kNoNode;
using model_tree::kRoot;
using model_tree::ModelTree;
using model_tree::NodeIndex;
using model_tree::NodeType;

/// The nodes from the root, level by level, parents first.
std::vector<NodeIndex> level_order(const ModelTree& tree) {
  std::vector<NodeIndex> order = {kRoot};
  order.reserve(tree.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const auto& children = tree.node(order[i]).children;
    order.insert(order.end(), children.begin(), children.end());
  }
  return order;
}

class PairMaker {
 public:
  explicit PairMaker(const TreePair& trees) : trees_(trees), target_order_(level_order(trees.target)) {
    pairs_.golden_of.resize(trees.target.size(), kNoNode);
    pairs_.target_of.resize(trees.golden.size(), kNoNode);
  }

  const std::vector<NodeIndex>& order() const { return target_order_; }
  NodeIndex golden_of(NodeIndex target) const { return pairs_.golden_of[target]; }

  /// The golden node of the same name; kNoNode if the golden tree has none.
  NodeIndex namesake(NodeIndex target) const { return trees_.golden.find(trees_.target.name(target)); }
  bool is_free(NodeIndex golden) const { return golden != kNoNode && pairs_.target_of[golden] == kNoNode; }
  /// Does nothing if one of them has a partner already.
  void pair(NodeIndex target, NodeIndex golden) {
    if (pairs_.golden_of[target] != kNoNode || !is_free(golden)) return;
    pairs_.golden_of[target] = golden;
    pairs_.target_of[golden] = target;
  }
  void warn(std::string warning) { pairs_.warnings.push_back(std::move(warning)); }
  NodePairs take() { return std::move(pairs_); }

 private:
  const TreePair& trees_;
  std::vector<NodeIndex> target_order_;
  NodePairs pairs_;
};

/// `Torch.relu.forward` of `Torch.relu.0.forward`: without the numbers of calls and ranks.
std::string without_numbers(std::string_view name) {
  std::string out;
  const auto digits_from = [&](std::size_t begin) {
    std::size_t end = begin;
    while (end < name.size() && is_digit(name[end])) ++end;
    return end;
  };
  constexpr std::string_view kRank = "_rank";
  for (std::size_t at = 0; at < name.size();) {
    if (name[at] == '.') {
      const std::size_t end = digits_from(at + 1);
      out += '.';
      at = end > at + 1 && end < name.size() && name[end] == '.' ? end + 1 : at + 1;
      continue;
    }
    if (name.substr(at).starts_with(kRank)) {
      const std::size_t end = digits_from(at + kRank.size());
      if (end > at + kRank.size()) {
        at = end;
        continue;
      }
    }
    out += name[at++];
  }
  return out;
}

/// The calls of each operation among the children, in their order.
std::unordered_map<std::string, std::vector<NodeIndex>> calls_below(const ModelTree& tree, NodeIndex parent) {
  std::unordered_map<std::string, std::vector<NodeIndex>> calls;
  for (const NodeIndex child : tree.node(parent).children) {
    if (tree.node(child).type == NodeType::api) calls[without_numbers(tree.name(child))].push_back(child);
  }
  return calls;
}

/// The node that holds each entry, by the entry's number.
std::vector<NodeIndex> nodes_by_entry(const NodeEntries& entries, std::size_t count) {
  std::vector<NodeIndex> nodes(count, kNoNode);
  for (std::size_t node = 0; node < entries.size(); ++node) {
    if (entries[node] < count) nodes[entries[node]] = static_cast<NodeIndex>(node);
  }
  return nodes;
}

/// Pairs the nodes with data that have a partner in `golden_of`.
void pair_by_entry(const TreePair& trees, const std::vector<std::uint32_t>& golden_of, PairMaker& maker) {
  std::uint32_t most = 0;
  for (const std::uint32_t entry : trees.golden_entries) {
    if (entry != kNoEntry && entry >= most) most = entry + 1;
  }
  const std::vector<NodeIndex> golden_nodes = nodes_by_entry(trees.golden_entries, most);
  for (const NodeIndex node : maker.order()) {
    const std::uint32_t entry = trees.target_entries[node];
    if (entry == kNoEntry || golden_of[entry] >= most) continue;
    maker.pair(node, golden_nodes[golden_of[entry]]);
  }
}

/// Pairs the remaining operations between modules in paired collections of several ranks, regardless of the
/// rank: a rank of one side may have run an operation that another rank ran on the other side.
void pair_across_ranks(const TreePair& trees, PairMaker& maker) {
  using Calls = std::unordered_map<std::string, std::vector<NodeIndex>>;
  const auto left_below = [](const ModelTree& tree, NodeIndex node, const auto& is_left) {
    Calls calls;
    for (const NodeIndex rank : tree.node(node).children) {
      if (tree.node(rank).type != NodeType::collection) continue;
      for (const NodeIndex call : tree.node(rank).children) {
        if (is_left(call)) calls[without_numbers(tree.name(call))].push_back(call);
      }
    }
    return calls;
  };
  for (const NodeIndex node : maker.order()) {
    if (trees.target.node(node).type != NodeType::collection || maker.golden_of(node) == kNoNode) continue;
    Calls golden_calls =
        left_below(trees.golden, maker.golden_of(node), [&](NodeIndex call) { return maker.is_free(call); });
    for (const auto& [name, calls] :
         left_below(trees.target, node, [&](NodeIndex call) { return maker.golden_of(call) == kNoNode; })) {
      const std::vector<NodeIndex>& others = golden_calls[name];
      for (std::size_t i = 0; i < std::min(calls.size(), others.size()); ++i) maker.pair(calls[i], others[i]);
    }
  }
}

}  // namespace

NodePairs pair_names(const TreePair& trees, bool below_pairs) {
  PairMaker maker(trees);
  for (const NodeIndex node : maker.order()) {
    const NodeIndex golden = maker.namesake(node);
    if (golden == kNoNode) continue;
    const NodeIndex above = node == kRoot ? kNoNode : maker.golden_of(trees.target.node(node).parent);
    const bool is_below_pair =
        node == kRoot || (above != kNoNode && above == trees.golden.node(golden).parent);
    if (is_below_pair || !below_pairs) maker.pair(node, golden);
  }
  return maker.take();
}

NodePairs pair_calls(const TreePair& trees, bool across_ranks) {
  PairMaker maker(trees);
  for (const NodeIndex node : maker.order()) {
    if (trees.target.node(node).type == NodeType::api) continue;
    const NodeIndex golden = maker.namesake(node);
    if (golden == kNoNode) continue;
    maker.pair(node, golden);
    if (maker.golden_of(node) == kNoNode) continue;
    const auto target_calls = calls_below(trees.target, node);
    const auto golden_calls = calls_below(trees.golden, golden);
    std::vector<std::string> counts;
    for (const auto& [name, calls] : target_calls) {
      const auto found = golden_calls.find(name);
      const std::size_t others = found == golden_calls.end() ? 0 : found->second.size();
      for (std::size_t i = 0; i < std::min(calls.size(), others); ++i) maker.pair(calls[i], found->second[i]);
      if (others == 0 || others == calls.size()) continue;
      counts.push_back(
          fmt::format("{} below {}: {} calls in the target, {} in the golden dump; they pair by order",
                      display(name), display(trees.target.name(node)), calls.size(), others));
    }
    std::ranges::sort(counts);
    for (std::string& each : counts) maker.warn(std::move(each));
  }
  if (across_ranks) pair_across_ranks(trees, maker);
  return maker.take();
}

NodePairs pair_entries(const TreePair& trees, const std::vector<std::uint32_t>& golden_of) {
  PairMaker maker(trees);
  pair_by_entry(trees, golden_of, maker);
  for (const NodeIndex node : maker.order()) {
    if (trees.target_entries[node] == kNoEntry) maker.pair(node, maker.namesake(node));
  }
  return maker.take();
}

NodePairs pair_aligned(const TreePair& trees, const std::vector<std::uint32_t>& golden_of) {
  PairMaker maker(trees);
  maker.pair(kRoot, kRoot);
  pair_by_entry(trees, golden_of, maker);
  const auto is_container = [](const NodeEntries& entries, NodeIndex node) {
    return node != kRoot && entries[node] == kNoEntry;
  };
  // The loop visits children before their parents.
  const std::vector<NodeIndex> order = trees.target.post_order();
  std::vector<bool> holds_pairs(trees.target.size());
  for (const NodeIndex node : order) {
    for (const NodeIndex child : trees.target.node(node).children) {
      if (maker.golden_of(child) != kNoNode) holds_pairs[node] = true;
    }
    if (!is_container(trees.target_entries, node)) continue;
    for (const NodeIndex child : trees.target.node(node).children) {
      if (maker.golden_of(child) == kNoNode) continue;
      const NodeIndex parent = trees.golden.node(maker.golden_of(child)).parent;
      if (parent == kNoNode || !is_container(trees.golden_entries, parent) || !maker.is_free(parent) ||
          trees.golden.node(parent).type != trees.target.node(node).type)
        continue;
      maker.pair(node, parent);
      break;
    }
  }
  for (const NodeIndex node : order) {
    const NodeIndex golden = maker.namesake(node);
    if (golden != kNoNode && !holds_pairs[node] && is_container(trees.target_entries, node) &&
        is_container(trees.golden_entries, golden))
      maker.pair(node, golden);
  }
  return maker.take();
}

void pair_micro_steps(const ModelTree& target, ModelTree& golden, const NodePairs& pairs) {
  for (const NodeIndex node : level_order(golden)) {
    const NodeIndex parent = golden.node(node).parent;
    if (node == kRoot) continue;
    std::uint32_t& step = golden.node(node).micro_step;
    if (parent != kRoot) {
      step = golden.node(parent).micro_step;
    } else if (pairs.target_of[node] != kNoNode) {
      step = target.node(pairs.target_of[node]).micro_step;
    }
  }
}

}  // namespace msprobe::graph
