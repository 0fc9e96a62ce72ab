// SPDX-License-Identifier: Apache-2.0
// One rank's model as a data base for the viewer.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "graph/data/item_texts.hpp"
#include "model_tree/build_tree.hpp"

namespace msprobe::graph {

struct GraphOptions {
  std::string target;
  std::string output;
  bool overflow_check = false;
  model_tree::TreeTraits tree;
  DataTraits data;
};

struct GraphResult {
  std::string file;
  std::size_t nodes = 0;
  std::vector<std::string> warnings;
};

/// Throws IoError, FormatError; leaves nothing then.
GraphResult build_graph(const GraphOptions& options);

}  // namespace msprobe::graph
