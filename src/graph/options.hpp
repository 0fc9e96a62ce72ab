// SPDX-License-Identifier: Apache-2.0
// The options of a run of graph_visualize.
#pragma once

#include <string>

#include "graph/data/item_texts.hpp"
#include "graph/edges.hpp"
#include "graph/pair/graph_pair.hpp"
#include "model_tree/build_tree.hpp"

namespace msprobe::graph {

struct GraphOptions {
  std::string target;
  std::string golden;  // empty: nothing is compared
  std::string output;
  bool as_vis = false;        // write the files of releases 8.x, not a database
  bool whole_stacks = false;  // in such files
  bool overflow_check = false;
  DataOptions data;
  PairOptions pair;
  bool origins = true;  // of two runs: judge where the errors of nodes come from

  bool compares() const { return !golden.empty(); }
};

}  // namespace msprobe::graph
