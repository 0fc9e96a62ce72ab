// SPDX-License-Identifier: Apache-2.0
// The data of a node in a merge: the entries of its rank and its partners put together to one, which
// everything else reads as if a rank had dumped it (docs/rules.md, "Shards").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dump/entry.hpp"
#include "dump/entry_items.hpp"
#include "graph/merge/merge_graph.hpp"
#include "pairing/joins.hpp"

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

/// What the comparison found of how the ranks hold the items of a node.
struct Decisions {
  const pairing::Joins* joins = nullptr;
  std::size_t first = 0;  // item of the node
};

struct JoinedContent {
  std::optional<NodeContent> content;
  std::vector<std::string> sentences;  // what was merged, and how
  bool merged = false;                 // with partners' data
};
/// By the node's `joint`, if it has one, and by what was decided, if anything was.
JoinedContent joined_content(const MergeGraph& graph, NodeIndex index, const Decisions& decisions = {});

/// What the ranks hold of a node, side by side.
struct SplitContent {
  std::optional<NodeContent> content;  // of the first of them
  std::optional<NodeContent>
      sum;  // the same, where a sum over the ranks that was recorded is its first output
  std::vector<std::optional<NodeContent>> others;

  /// The other ranks' items of that name; none if one of them has no such tensor.
  std::vector<const dump::Item*> partners(std::size_t item) const;
};
SplitContent split_content(const MergeGraph& graph, NodeIndex index);
/// The rank that an item of a node is of.
const MergeRank& rank_of(const MergeNode& node, const dump::Item& item);

}  // namespace msprobe::graph
