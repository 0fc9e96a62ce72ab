// SPDX-License-Identifier: Apache-2.0
// The options that say how a model was split.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "graph/merge/parallel_plan.hpp"
#include "support/option_list.hpp"

namespace msprobe::graph {

class RankMergeOptions {
 public:
  void declare(OptionList& options);
  /// Are ranks to be merged?
  bool given() const { return !rank_size_.empty() || !tp_.empty() || !pp_.empty(); }
  /// One plan a side: the target's first. UsageError for values that are missing, or no numbers.
  std::vector<ParallelPlan> sides(std::size_t count) const;
  /// Is the merged model asked for as JSON files?
  bool as_json() const { return file_type_ == "json"; }
  /// Are the files of releases 8.x asked for?
  bool as_vis() const { return file_type_ == "vis"; }

 private:
  std::vector<std::string> rank_size_;
  std::vector<std::string> tp_;
  std::vector<std::string> pp_;
  std::vector<std::string> vpp_;
  std::vector<std::string> order_;
  std::string file_type_ = "db";
};

}  // namespace msprobe::graph
