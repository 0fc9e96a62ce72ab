// SPDX-License-Identifier: Apache-2.0
// What a run of graph_visualize does with each graph that was made, whatever made it: write it, count it, say
// how far the work is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/data/node_tally.hpp"
#include "graph/options.hpp"
#include "graph/output.hpp"
#include "graph/plan.hpp"
#include "graph/rank_graph.hpp"

namespace msprobe {
class Progress;
}

namespace msprobe::graph {

struct GraphResult {
  std::string file;  // empty: no rank could be read
  std::size_t nodes = 0;
  std::size_t ranks = 0;           // that are in it, of all steps
  std::optional<NodeTally> tally;  // of what was compared
  std::vector<std::string> warnings;
  std::vector<std::string> unconnected;  // nodes, a line each
  std::vector<std::string> problems;     // ranks that are not in it, and why
};

/// How far the work is, as it goes on.
struct GraphProgress {
  Progress* line = nullptr;
  std::function<void(double percent)> tell;  // may be empty
};

class GraphJob {
 public:
  /// `parts`: of the work; `with_edges`: communication between ranks is told.
  GraphJob(const GraphOptions& options, std::size_t parts, bool with_edges, const GraphProgress& progress);

  GraphResult result;
  GraphOutput& output() { return *output_; }
  /// What was written so far.
  const GraphExtent& extent() const { return extent_; }
  /// For the next step of the rank; null if nobody asks where errors come from.
  diagnosis::RankHistory* history(std::int64_t rank) {
    return options_.origins ? &histories_[rank] : nullptr;
  }

  /// Writes a graph, or two, for which output() was told to begin. `begins`: how much of the part that is
  /// worked on is done.
  void write(const GraphPlace& place, const NodeSource& graph, double begins = 0);
  void write(const GraphPlace& place, const GraphPair& pair, double begins = 0);
  /// Counts what was written.
  void count(const GraphPlace& place, std::size_t nodes, std::uint32_t micro_steps);
  void tell_unconnected(const RankGraph& graph);

  /// Something that takes a while; of so many nodes, if it is known.
  void begin(const std::string& what, std::size_t nodes = 0) const;
  void tell(double part) const;
  void end_part() { ++done_; }
  GraphResult finish();

 private:
  struct Sides {
    const NodeSource& target;
    const NodeSource* golden;  // null: a single run
    std::optional<ComparedBy> task;
    std::uint32_t micro_steps;
  };
  void write(const GraphPlace& place, const Sides& sides, double begins);

  const GraphOptions& options_;
  const GraphProgress& progress_;
  double parts_;
  double done_ = 0;
  std::unique_ptr<GraphOutput> output_;
  GraphExtent extent_;
  std::map<std::int64_t, diagnosis::RankHistory> histories_;  // of the ranks, step by step
};

}  // namespace msprobe::graph
