// SPDX-License-Identifier: Apache-2.0
// Compares static-graph dumps of MindSpore kernel by kernel (docs/formats.md, "Static graphs of MindSpore").
#pragma once

#include <string>

#include "compare/static_graph/graph_tree.hpp"
#include "compare/task.hpp"
#include "dump/look.hpp"

namespace msprobe::compare {

/// The path of a dump, and the graphs that were found there.
struct FoundGraphs {
  std::string path;
  dump::GraphSearch search;
};

/// Makes one task for each rank and step that both dumps have. Throws FormatError if they share no step, and
/// if a search met a problem. A task pairs items by operator, task, direction and slot; repeated items pair
/// in the order of their times. It throws FormatError if one side has tensors and the other statistics. A
/// `.npy` that cannot be read gives a row that says so.
TaskPlan plan_static_graphs(const FoundGraphs& target, const FoundGraphs& golden,
                            const GraphSelection& selection, Progress* progress);

}  // namespace msprobe::compare
