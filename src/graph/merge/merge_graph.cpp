// SPDX-License-Identifier: Apache-2.0
#include "graph/merge/merge_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "dump/names.hpp"

namespace msprobe::graph {

MergeGraph::MergeGraph(const MergeRank& rank) : rank_(rank), nodes_(1) {
  const model_tree::ModelTree& tree = rank.graph.built.tree;
  for (NodeIndex index = kRoot; index < tree.size(); ++index) {
    const model_tree::Node& node = tree.node(index);
    const std::uint32_t entry = rank.graph.entries.find(tree.name(index));
    const NodeIndex added =
        add(std::string(tree.name(index)), node.type, {&rank, entry == TextIndex::kNone ? 0 : entry});
    MergeNode& copy = nodes_[added];
    copy.parent = node.parent;
    copy.micro_step = node.micro_step;
    copy.stack = node.stack;
    copy.children = node.children;
  }
}

NodeIndex MergeGraph::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? kNoNode : found->second;
}

NodeIndex MergeGraph::add(std::string name, NodeType type, const MergeNode::RankEntry& own) {
  const auto index = static_cast<NodeIndex>(nodes_.size());
  MergeNode& node = nodes_.emplace_back();
  node.name = std::move(name);
  node.type = type;
  node.own = own;
  know(index);
  return index;
}

void MergeGraph::know(NodeIndex index) {
  by_name_.try_emplace(nodes_[index].name, index);
}

void MergeGraph::rename(NodeIndex index, std::string name) {
  const auto known = by_name_.find(nodes_[index].name);
  if (known != by_name_.end() && known->second == index) by_name_.erase(known);
  nodes_[index].name = std::move(name);
  know(index);
}

NodeIndex MergeGraph::copy(const MergeGraph& from, NodeIndex index) {
  const std::vector<NodeIndex> nodes = from.below(index);
  std::unordered_map<NodeIndex, NodeIndex> copies;
  for (const NodeIndex each : nodes) {
    const MergeNode& node = from.node(each);
    const NodeIndex added = add(node.name, node.type, node.own);
    MergeNode& copy = nodes_[added];
    copy.micro_step = node.micro_step;
    copy.stack = node.stack;
    copy.inputs = node.inputs;
    copy.outputs = node.outputs;
    copies[each] = added;
  }
  for (const NodeIndex each : nodes) {
    for (const NodeIndex child : from.node(each).children) attach(copies.at(child), copies.at(each));
  }
  return copies.at(index);
}

void MergeGraph::attach(NodeIndex child, NodeIndex parent) {
  nodes_[child].parent = parent;
  nodes_[parent].children.push_back(child);
}

void MergeGraph::name_apis_by_rank(NodeIndex top) {
  for (const NodeIndex each : below(top)) {
    const MergeNode& node = nodes_[each];
    if (node.type == NodeType::api && !is_name_with_rank(node.name) && node.own.rank != nullptr)
      rename(each, name_with_rank(node.name, node.own.rank->number));
  }
}

std::vector<NodeIndex> MergeGraph::below(NodeIndex index) const {
  std::vector<NodeIndex> out;
  std::vector<NodeIndex> open = {index};
  while (!open.empty()) {
    const NodeIndex at = open.back();
    open.pop_back();
    out.push_back(at);
    const auto& children = nodes_[at].children;
    open.insert(open.end(), children.rbegin(), children.rend());
  }
  return out;
}

namespace {

/// The place of the operation in a name: its second part, as begin and end.
std::pair<std::size_t, std::size_t> operation_of(std::string_view name) {
  const std::size_t begin = name.find('.');
  if (begin == std::string_view::npos) return {0, name.size()};
  return {begin + 1, std::min(name.find('.', begin + 1), name.size())};
}

}  // namespace

std::string name_with_rank(std::string_view name, std::int64_t rank) {
  const std::size_t end = operation_of(name).second;
  return fmt::format("{}_rank{}{}", name.substr(0, end), rank, name.substr(end));
}

bool is_name_with_rank(std::string_view name) {
  const auto [begin, end] = operation_of(name);
  const std::string_view operation = name.substr(begin, end - begin);
  const std::size_t at = operation.rfind("_rank");
  return at != std::string_view::npos && dump::is_digits(operation.substr(at + 5));
}

}  // namespace msprobe::graph
