// SPDX-License-Identifier: Apache-2.0
// Compares static-graph dumps of MindSpore kernel by kernel (docs/formats.md, "Static graphs of MindSpore").
#pragma once

#include <string>

#include "compare/imports.hpp"
#include "compare/static_graph/graph_tree.hpp"
#include "compare/task.hpp"
#include "dump/look.hpp"

namespace msprobe::compare {

/// Where a dump lies, and what was found there.
struct FoundGraphs {
  std::string path;
  dump::GraphSearch search;
};

/// One task for each rank and step that both dumps have; FormatError if there is none, and for a search that
/// met a problem. A task pairs by operator, task, direction and slot, repeated ones in the order of their
/// times. It throws FormatError if one side has tensors and the other statistics; a `.npy` that cannot be
/// read is a row that says so.
Plan plan_static_graphs(const FoundGraphs& target, const FoundGraphs& golden, const GraphSelection& selection,
                        Progress* progress);

}  // namespace msprobe::compare
