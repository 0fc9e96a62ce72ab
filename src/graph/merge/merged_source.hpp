// SPDX-License-Identifier: Apache-2.0
// The graph of several ranks in one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dump/side.hpp"
#include "graph/data/node_source.hpp"
#include "graph/merge/merge_graph.hpp"
#include "pairing/joins.hpp"
#include "support/output_file.hpp"

namespace msprobe::graph {

class MergedSource final : public NodeSource {
 public:
  /// The ranks of the graph must outlive this object.
  MergedSource(std::shared_ptr<const MergeGraph> graph, const DataOptions& options, bool overflow_check);

  const model_tree::ModelTree& tree() const override { return tree_; }
  std::optional<std::string> tensor_folder() const override;
  NodeData data(model_tree::NodeIndex node) const override;
  model_tree::ModelTree& own_tree() { return tree_; }

  std::int64_t rank() const { return graph_->rank(); }
  const MergeGraph& graph() const { return *graph_; }
  /// From now on the data is put together as a comparison of the items decided.
  void follow(std::shared_ptr<const pairing::Joins> joins, const dump::Side& items);
  /// The node of the graph that became this one of the tree.
  NodeIndex origin(model_tree::NodeIndex node) const { return origins_[node]; }

 private:
  std::string_view level_of(NodeIndex index) const;

  std::shared_ptr<const MergeGraph> graph_;
  DataOptions options_;
  bool overflow_check_ = false;
  model_tree::ModelTree tree_;
  std::vector<NodeIndex> origins_;  // by node of the tree
  std::shared_ptr<const pairing::Joins> joins_;
  std::vector<std::uint32_t> first_items_;  // by node of the tree; UINT32_MAX: it has none
};

/// Writes a merged model as a dump: construct.json, dump.json and stack.json (docs/rules.md, "A merged model
/// as JSON"). Creates the folder of a rank and adds its three files, which have no names yet. Returns the
/// number of nodes. Throws IoError, FormatError.
std::size_t export_json(const MergedSource& source, const std::string& folder,
                        std::vector<OutputFile>& files);

}  // namespace msprobe::graph
