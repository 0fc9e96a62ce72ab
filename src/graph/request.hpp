// SPDX-License-Identifier: Apache-2.0
// compare.json of the releases 8.x, as their command `graph` takes it.
#pragma once

#include <string>
#include <vector>

#include "graph/merge/parallel_plan.hpp"

namespace msprobe::graph {

struct GraphRequest {
  std::string target;
  std::string golden;  // empty: nothing is compared
  bool print_rows = true;
  std::vector<ParallelPlan> plans;  // one a side, if the ranks of a model are to be merged
};

/// IoError, FormatError.
GraphRequest read_graph_request(const std::string& path);

}  // namespace msprobe::graph
