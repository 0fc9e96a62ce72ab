// SPDX-License-Identifier: Apache-2.0
// The steps that make one graph of several (docs/rules.md, "Ranks merged into one graph"). The first graph
// of a group takes in the others.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "graph/merge/merge_graph.hpp"

namespace msprobe::graph {

using MergeGroup = std::vector<std::shared_ptr<MergeGraph>>;
using RankGroups = std::vector<std::vector<std::int64_t>>;

/// Operations between modules, of all ranks.
void gather_free_apis(const MergeGroup& group);

/// Values of tensors that the ranks of a tensor-parallel group hold in parts. `groups`: of all ranks. Gives a
/// line for each value that all ranks should hold alike, and do not.
std::vector<std::string> merge_tensor_parallel(const MergeGroup& group, const RankGroups& groups);

/// Layers of the stages of a pipeline, one behind the other.
void join_stages(const MergeGroup& group);

/// Layers of a graph whose stages hold several parts of the model each.
void join_chunks(MergeGraph& graph, int chunks);

}  // namespace msprobe::graph
