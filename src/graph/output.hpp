// SPDX-License-Identifier: Apache-2.0
// Where graphs go: a data base, or the files of releases 8.x.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/config.hpp"
#include "graph/data/node_source.hpp"
#include "graph/edges.hpp"
#include "graph/plan.hpp"

namespace msprobe::graph {

/// What is told while a graph is written, in the order of its nodes.
struct GraphObserver {
  std::function<void(std::size_t nodes)> written;  // of how many more
  /// `row`: by which edges find the node again.
  std::function<void(std::int64_t row, std::string_view node, const NodeData& data)> node;
};

/// What is said of the graphs of a rank besides their nodes.
struct GraphFrame {
  std::optional<ComparedBy> task;  // none: a single run
  std::uint32_t micro_steps = 1;
  std::vector<std::pair<std::string_view, RankCalls>> calls;  // by side
};

class GraphOutput {
 public:
  virtual ~GraphOutput() = default;

  /// What follows is of this rank, up to end() or take_back().
  virtual void begin(const GraphPlace& place) = 0;
  /// The number of its nodes. `side`: `NPU`, or `Bench` behind it.
  virtual std::size_t add(std::string_view side, const NodeSource& source, const GraphObserver& observer) = 0;
  virtual void end(GraphFrame&& frame) = 0;
  /// The rank counts for nothing.
  virtual void take_back() = 0;
  /// Was anything refused? Then nothing can be added any more.
  virtual bool failed() const = 0;
  /// Gives files their names; what is there then, in words.
  virtual std::string finish(const GraphExtent& extent) = 0;
};

}  // namespace msprobe::graph
