// SPDX-License-Identifier: Apache-2.0
// Counts the results of comparing nodes, for the lines on the terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "graph/data/node_source.hpp"

namespace msprobe::graph {

class NodeTally {
 public:
  void add_target(std::string_view place, std::string_view node, const NodeData& data);
  void add_golden(std::string_view node, const NodeData& data);
  void add(const NodeTally& other);

  /// The numbers of nodes that passed and that did not, then the nodes that introduce an error, with the
  /// evidence.
  std::vector<std::string> lines() const;

 private:
  std::size_t error_ = 0;
  std::size_t warning_ = 0;
  std::size_t pass_ = 0;
  std::size_t without_values_ = 0;  // in pairs
  std::size_t target_only_ = 0;
  std::size_t golden_only_ = 0;
  std::size_t introduced_ = 0;
  std::vector<std::string> introduced_lines_;  // only the first few
};

}  // namespace msprobe::graph
