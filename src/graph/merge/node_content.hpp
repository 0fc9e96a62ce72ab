// SPDX-License-Identifier: Apache-2.0
// The data of a node in a merge: the entries of its rank and its partners combined into one entry, which all
// other code reads as if a rank had dumped it (docs/rules.md, "Shards").
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

/// Reads an entry and returns the number of its bytes in the file; 0, and an empty `entry`, if there is no
/// such entry. Throws IoError, FormatError.
std::uint64_t read_place(const MergeNode::RankEntry& place, dump::Entry& entry);

struct NodeContent {
  dump::Entry entry;
  dump::EntryItems items;
  std::uint64_t size = 0;  // the size of the entry in its file, in bytes
};

/// The entry of the node's own rank, with inputs and outputs of other entries where the merge says so;
/// nothing without an entry. The items are named as if `name` were the node's name. Throws IoError,
/// FormatError.
std::optional<NodeContent> content_of(const MergeNode& node, std::string_view name);
inline std::optional<NodeContent> content_of(const MergeNode& node) {
  return content_of(node, node.name);
}

/// Where two graphs have different values for a node; only tensors that both have are compared.
struct ContentDifference {
  bool inputs = false;  // or parameters
  bool outputs = false;
};
ContentDifference difference(const NodeContent& a, const NodeContent& b);

/// Do the statistics of two items agree? Then the ranks hold the same tensor.
bool same_statistics(const dump::Side& a, const dump::Item& a_item, const dump::Side& b,
                     const dump::Item& b_item);

/// The decisions of the comparison on how the ranks share the items of a node.
struct Decisions {
  const pairing::Joins* joins = nullptr;
  std::size_t first = 0;  // number of the node's first item
};

struct JoinedContent {
  std::optional<NodeContent> content;
  std::vector<std::string> sentences;  // one for each merged value: how it was merged
};
/// Joins the data of a node by its `joint`, if it has one, and by the decisions, if there are any.
JoinedContent joined_content(const MergeGraph& graph, NodeIndex index, const Decisions& decisions = {});

/// The data of a node on each rank, and of its partners in `joint`, which may be null.
struct SplitContent {
  std::optional<NodeContent> content;  // of the first rank
  std::vector<std::optional<NodeContent>> others;

  /// The other ranks' items with the same name; empty if one of them has no such tensor.
  std::vector<const dump::Item*> partners(std::size_t item) const;
};
SplitContent split_content(const MergeNode& node, const MergedData* joint);
/// The rank that an item of a node comes from.
const MergeRank& rank_of(const MergeNode& node, const dump::Item& item);

}  // namespace msprobe::graph
