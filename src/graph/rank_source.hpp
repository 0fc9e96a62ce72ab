// SPDX-License-Identifier: Apache-2.0
// The graph of one rank by itself.
#pragma once

#include <optional>
#include <string>

#include "graph/data/node_source.hpp"
#include "graph/rank_graph.hpp"

namespace msprobe::graph {

class RankSource final : public NodeSource {
 public:
  /// The rank must outlive this.
  RankSource(const RankGraph& rank, const DataOptions& options, bool overflow_check)
      : rank_(rank), options_(options), overflow_check_(overflow_check) {}

  const model_tree::ModelTree& tree() const override { return rank_.built.tree; }
  std::optional<std::string> tensor_folder() const override {
    return options_.as_release8 ? rank_.header.data_directory : rank_.tensor_folder();
  }
  NodeData data(model_tree::NodeIndex node) const override;

 private:
  const RankGraph& rank_;
  DataOptions options_;
  bool overflow_check_ = false;
};

}  // namespace msprobe::graph
