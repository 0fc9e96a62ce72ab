// SPDX-License-Identifier: Apache-2.0
// Which graphs a run makes: one for each rank of each step, of one dump or of two (docs/rules.md,
// "Which graphs are made").
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace msprobe::graph {

/// One graph: where it stands in the data base, and what it is made of.
struct GraphPlace {
  std::int64_t step = 0;
  std::int64_t rank = 0;
  std::string label;   // step0/rank1, of the folders' names; empty where a rank's folder was named
  std::string target;  // folder of a rank
  std::string golden;  // empty: nothing is compared
};

struct Plan {
  bool one_folder = false;         // of a rank, whose step and rank count as 0
  std::vector<GraphPlace> graphs;  // by step, then rank
  std::vector<std::string> warnings;
  std::vector<std::string> problems;  // ranks that have no place, a line each
};

/// `golden` may be empty. What one side alone has is told and left out. UsageError, IoError, FormatError if
/// there is nothing to do.
Plan make_plan(const std::string& target, const std::string& golden);

}  // namespace msprobe::graph
