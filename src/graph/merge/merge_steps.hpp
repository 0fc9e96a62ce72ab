// SPDX-License-Identifier: Apache-2.0
// The steps that combine several graphs (docs/rules.md, "Ranks merged into one graph"). The first graph of a
// group receives the nodes of the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "graph/merge/merge_graph.hpp"

namespace msprobe::graph {

using MergeGroup = std::vector<std::shared_ptr<MergeGraph>>;
using RankGroups = std::vector<std::vector<std::int64_t>>;

/// Gathers the operations between modules of all ranks.
void gather_free_apis(const MergeGroup& group);

/// Merges tensors that the ranks of a tensor-parallel group hold in parts. `groups`: of all ranks. Returns a
/// line for each value that should be equal on all ranks but differs.
std::vector<std::string> merge_tensor_parallel(const MergeGroup& group, const RankGroups& groups);

/// Appends the layers of later pipeline stages to those of earlier ones.
void join_stages(const MergeGroup& group);

/// Joins the layers of a graph whose stages each hold several parts (chunks) of the model.
void join_chunks(MergeGraph& graph, int chunks);

/// The number of a layer in the name of a module: `layers.3.`, `layer.3.`.
struct LayerNumber {
  std::size_t begin = std::string_view::npos;  // of the digits
  std::size_t end = 0;
  explicit operator bool() const { return begin != std::string_view::npos; }
};
/// The first layer number at or after `from`.
LayerNumber find_layer(std::string_view name, std::size_t from = 0);

/// The name with that number in place of the first one of a layer.
std::string with_layer(std::string_view name, std::size_t number);

}  // namespace msprobe::graph
