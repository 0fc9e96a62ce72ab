// SPDX-License-Identifier: Apache-2.0
// The data of a node in a merge: the entries of its rank and its partners put together to one, which
// everything else reads as if a rank had dumped it (spec/graph-visualize.md 12.3).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dump/entry.hpp"
#include "dump/entry_items.hpp"
#include "graph/merge/merge_graph.hpp"

namespace msprobe::graph {

struct NodeContent {
  dump::Entry entry;
  dump::EntryItems items;
  std::uint64_t size = 0;  // bytes that the entry took in its file
};

/// What the node's own rank has, and others for its inputs and outputs if so asked; nothing without an entry.
/// The items are called as if `name` were the node's name. Throws IoError, FormatError.
std::optional<NodeContent> content_of(const MergeNode& node, std::string_view name);
inline std::optional<NodeContent> content_of(const MergeNode& node) {
  return content_of(node, node.name);
}

/// How two graphs' values of a node relate; tensors that both have are compared.
struct ContentDifference {
  bool inputs = false;  // or parameters
  bool outputs = false;
};
ContentDifference difference(const NodeContent& a, const NodeContent& b);

/// The statistics of an item agree: a value of a tensor that the ranks have in common.
bool same_statistics(const dump::Side& a, const dump::Item& a_item, const dump::Side& b,
                     const dump::Item& b_item);

struct JoinedContent {
  std::optional<NodeContent> content;
  std::vector<std::string> sentences;  // what was merged, and how
  bool merged = false;                 // with partners' data
};
/// By the node's `joint`, if it has one.
JoinedContent joined_content(const MergeGraph& graph, NodeIndex index);

}  // namespace msprobe::graph
