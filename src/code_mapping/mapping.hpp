// SPDX-License-Identifier: Apache-2.0
// The command's work: the nodes of a graph file beside the tensors of a dump.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "code_mapping/ir_graph.hpp"

namespace msprobe::code_mapping {

struct Result {
  std::vector<std::string> files;  // that were written
  std::size_t tensors = 0;         // files or rows
  std::size_t mapped = 0;          // of them, those with a node
};

/// For `.npy` files in `dump`, a folder or one of them, writes code_mapping_<time>.csv into the folder
/// `output`. Without any, adds the columns `Code Stack` and `Scope Name` to each statistic.csv. `ir` names
/// the graph file.
Result map_code(const std::string& ir, const std::string& dump, const std::string& output);

}  // namespace msprobe::code_mapping
