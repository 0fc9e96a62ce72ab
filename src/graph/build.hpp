// SPDX-License-Identifier: Apache-2.0
// The models of a dump, or of one beside another, as a data base for the viewer.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/data/item_texts.hpp"
#include "graph/data/node_tally.hpp"
#include "graph/edges.hpp"
#include "graph/pair/graph_pair.hpp"
#include "model_tree/build_tree.hpp"

namespace msprobe {
class Progress;
}

namespace msprobe::graph {

struct ConfigTraits {
  bool of_first_graph = false;  // the number of micro steps; the ranks are those of the first step
};

struct GraphOptions {
  std::string target;
  std::string golden;  // empty: nothing is compared
  std::string output;
  bool overflow_check = false;
  model_tree::TreeTraits tree;
  DataTraits data;
  EdgeTraits edges;
  ConfigTraits config;
  PairOptions pair;
  bool origins = true;  // of two runs: where the errors of nodes come from is judged
};

struct GraphResult {
  std::string file;  // empty: no rank could be read
  std::size_t nodes = 0;
  std::size_t ranks = 0;           // that are in it, of all steps
  std::optional<NodeTally> tally;  // of what was compared
  std::vector<std::string> warnings;
  std::vector<std::string> unconnected;  // nodes, a line each
  std::vector<std::string> problems;     // ranks that are not in it, and why
};

/// How far the work is, as it goes on.
struct GraphProgress {
  Progress* line = nullptr;
  std::function<void(double percent)> tell;  // may be empty
};

/// A rank that cannot be read is a problem, and the others are written. Throws UsageError, IoError,
/// FormatError, and leaves nothing then.
GraphResult build_graph(const GraphOptions& options, const GraphProgress& progress = {});

/// `{type}_{local time}.vis.db` in the folder; a file that is there already is left alone.
std::string result_path(const std::string& folder, std::string_view type);

}  // namespace msprobe::graph
