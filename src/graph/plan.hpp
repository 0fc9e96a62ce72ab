// SPDX-License-Identifier: Apache-2.0
// Plans which graphs a run makes: one for each rank of each step, of one dump or of two (docs/rules.md,
// "Which graphs are made").
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace msprobe::graph {

/// One graph: its place in the database, and the folders that it is made from.
struct GraphPlace {
  std::int64_t step = 0;
  std::int64_t rank = 0;
  std::string label;   // step0/rank1, from the folders' names; empty if the user named a rank's folder
  std::string target;  // the folder of a rank
  std::string golden;  // empty: nothing is compared
};

struct GraphPlan {
  bool one_folder = false;         // the folder of a single rank, whose step and rank count as 0
  std::vector<GraphPlace> graphs;  // by step, then rank
  std::vector<std::string> warnings;
  std::vector<std::string> problems;  // ranks that have no place, one line each
};

/// `golden` may be empty. Ranks that only one side has are left out, with a warning. UsageError, IoError,
/// FormatError if there is nothing to do.
GraphPlan make_plan(const std::string& target, const std::string& golden);

}  // namespace msprobe::graph
