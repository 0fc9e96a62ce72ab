// SPDX-License-Identifier: Apache-2.0
// The destination of graphs: a database, or the files of releases 8.x; the options of a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "graph/config.hpp"
#include "graph/data/node_source.hpp"
#include "graph/edges.hpp"
#include "graph/pair/graph_pair.hpp"
#include "graph/plan.hpp"

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

/// The calls that an observer gets while a graph is written, in the order of its nodes.
struct GraphObserver {
  std::function<void(std::size_t nodes)> written;  // how many more were written
  /// `row`: edges use it to find the node again.
  std::function<void(std::int64_t row, std::string_view node, const NodeData& data)> node;
};

/// The data of a rank's graphs besides their nodes.
struct GraphFrame {
  std::optional<ComparedBy> task;  // none: a single run
  std::uint32_t micro_steps = 1;
  std::vector<std::pair<std::string_view, RankCalls>> calls;  // by side
};

class GraphOutput {
 public:
  virtual ~GraphOutput() = default;

  /// The following calls are for this rank, up to end() or take_back().
  virtual void begin(const GraphPlace& place) = 0;
  /// Writes a graph and returns the number of its nodes. `side`: `NPU`, then `Bench` for the second graph.
  virtual std::size_t add(std::string_view side, const NodeSource& source, const GraphObserver& observer) = 0;
  virtual void end(GraphFrame&& frame) = 0;
  /// Discards all that was written for the rank.
  virtual void take_back() = 0;
  /// Has the output refused anything? Then nothing can be added any more.
  virtual bool failed() const = 0;
  /// Gives the files their names. Returns a description of the result for the user.
  virtual std::string finish(const GraphExtent& extent) = 0;
};

/// All graphs in one database. Makes no file before the first graph.
std::unique_ptr<GraphOutput> database_output(const GraphOptions& options, bool with_edges);
/// A .vis file of releases 8.x for each rank.
std::unique_ptr<GraphOutput> vis_output(const GraphOptions& options);

}  // namespace msprobe::graph
