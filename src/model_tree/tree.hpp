// SPDX-License-Identifier: Apache-2.0
// The modules and operations of one rank as a tree (docs/rules.md, "The tree of a model").
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "support/text_pool.hpp"

namespace msprobe::model_tree {

enum class NodeType : std::uint8_t { module = 0, api = 1, collection = 9 };
/// The type that the beginning of the name shows.
NodeType node_type(std::string_view name);

using NodeIndex = std::uint32_t;
inline constexpr NodeIndex kNoNode = 0;
inline constexpr NodeIndex kRoot = 1;
inline constexpr std::string_view kRootName = "DefaultModel";
inline constexpr std::string_view kCollectionName = "Apis_Between_Modules";  // their names begin so

struct Node {
  NodeIndex parent = kNoNode;
  NodeType type = NodeType::module;
  std::uint32_t stack = 0;       // among the tree's stacks
  std::uint32_t micro_step = 0;  // from 0
  std::vector<NodeIndex> children;
};

/// The nodes of a tree, known by number, in the order of their creation.
class ModelTree {
 public:
  ModelTree();

  std::size_t size() const { return nodes_.size(); }  // the nodes are 1 to size() - 1
  Node& node(NodeIndex index) { return nodes_[index]; }
  const Node& node(NodeIndex index) const { return nodes_[index]; }
  std::string_view name(NodeIndex index) const { return names_.at(index); }
  /// Returns kNoNode if no node has that name.
  NodeIndex find(std::string_view name) const;
  /// Returns the node of that name, and creates it if it is new.
  NodeIndex add(std::string_view name);
  /// Makes the child the last one of the parent.
  void attach(NodeIndex child, NodeIndex parent);

  /// Children in their order, then their node, so that the root is last.
  std::vector<NodeIndex> post_order() const;

  /// Stacks are JSON lists of lines, numbered from 0, the empty list.
  std::uint32_t add_stack(std::string_view json) { return stacks_.intern(json) - 1; }
  std::string_view stack(std::uint32_t number) const { return stacks_.at(number + 1); }

  std::uint32_t micro_steps = 1;
  bool steps_recorded = false;  // the dump itself numbers them

 private:
  std::vector<Node> nodes_;
  TextTable names_;
  TextTable stacks_;
};

/// True if the name ends in `.{direction}.{digits}`.
bool is_call_of(std::string_view name, std::string_view direction);
/// The name with `.{to}.{digits}` in place of its end `.{from}.{digits}`; other names stay unchanged.
std::string turned(std::string_view name, std::string_view from, std::string_view to);

}  // namespace msprobe::model_tree
