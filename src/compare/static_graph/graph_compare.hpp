// SPDX-License-Identifier: Apache-2.0
// Compares static-graph dumps of MindSpore kernel by kernel (spec/compare.md 12.5).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "compare/lists/list_rows.hpp"
#include "compare/metrics/traits.hpp"
#include "compare/static_graph/graph_files.hpp"
#include "compare/static_graph/graph_tree.hpp"
#include "compare/static_graph/traits.hpp"

namespace msprobe {
class Progress;
}

namespace msprobe::compare {

struct GraphPair {
  GraphPlace place;
  std::vector<std::string> target;  // folders
  std::vector<std::string> golden;
};

struct GraphPlan {
  std::vector<GraphPair> pairs;
  std::vector<std::string> one_sided;
};

/// Where a dump lies, and what was found there.
struct FoundGraphs {
  std::string path;
  dump::GraphSearch search;
};

/// Ranks and steps that both dumps have. FormatError if there is none.
GraphPlan plan_graphs(const FoundGraphs& target, const FoundGraphs& golden, const GraphSelection& selection);

struct GraphResult {
  GraphMode mode = GraphMode::tensors;
  RowList list;
};

/// Pairs by operator, task, direction and slot, repeated ones in the order of their times. FormatError if one
/// side has tensors and the other statistics; a `.npy` that cannot be read is a row that says so.
GraphResult compare_graphs(const GraphPair& pair, const GraphTraits& traits, const MeasureTraits& measure,
                           Progress* progress);

}  // namespace msprobe::compare
