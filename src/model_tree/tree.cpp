// SPDX-License-Identifier: Apache-2.0
#include "model_tree/tree.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "dump/names.hpp"

namespace msprobe::model_tree {
namespace {

/// True if the name begins with the pattern. A dot stands for any character but a line feed, as in the Python
/// tool.
bool begins_like(std::string_view name, std::string_view pattern) {
  if (name.size() < pattern.size()) return false;
  return std::equal(pattern.begin(), pattern.end(), name.begin(),
                    [](char expected, char c) { return expected == '.' ? c != '\n' : c == expected; });
}

}  // namespace

NodeType node_type(std::string_view name) {
  static constexpr std::array<std::string_view, 5> kModules = {"Module.", "Cell.", "optimizer", "clip_grad",
                                                               kRootName};
  static constexpr std::array<std::string_view, 12> kApis = {
      "Tensor.",    "Torch.", "Functional.",     "NPU.",      "VF.", "Distributed.", "Aten.", "Mint.",
      "Primitive.", "Jit.",   "MintFunctional.", "MindSpeed."};
  const auto begins = [&](std::string_view pattern) { return begins_like(name, pattern); };
  if (std::ranges::any_of(kModules, begins)) return NodeType::module;
  return std::ranges::any_of(kApis, begins) ? NodeType::api : NodeType::module;
}

ModelTree::ModelTree() : nodes_(1) {
  add(kRootName);
  add_stack("[]");
}

NodeIndex ModelTree::find(std::string_view name) const {
  const std::uint32_t found = names_.find(name);
  return found == TextIndex::kNone ? kNoNode : found;
}

NodeIndex ModelTree::add(std::string_view name) {
  const NodeIndex index = names_.intern(name);
  if (index == nodes_.size()) nodes_.emplace_back().type = node_type(name);
  return index;
}

void ModelTree::attach(NodeIndex child, NodeIndex parent) {
  nodes_[child].parent = parent;
  nodes_[parent].children.push_back(child);
}

std::vector<NodeIndex> ModelTree::post_order() const {
  std::vector<NodeIndex> order;
  order.reserve(nodes_.size());
  std::vector<std::pair<NodeIndex, std::size_t>> path = {{kRoot, 0}};
  while (!path.empty()) {
    auto& [index, next] = path.back();
    if (next < nodes_[index].children.size()) {
      path.emplace_back(nodes_[index].children[next++], 0);
    } else {
      order.push_back(index);
      path.pop_back();
    }
  }
  return order;
}

bool is_call_of(std::string_view name, std::string_view direction) {
  const auto [front, number] = dump::split_last(name);
  return dump::is_digits(number) && dump::split_last(front).second == direction &&
         front.size() > direction.size();
}

std::string turned(std::string_view name, std::string_view from, std::string_view to) {
  if (!is_call_of(name, from)) return std::string(name);
  const auto [front, number] = dump::split_last(name);
  std::string out(dump::split_last(front).first);
  for (const std::string_view part : {to, number}) out.append(".").append(part);
  return out;
}

}  // namespace msprobe::model_tree
