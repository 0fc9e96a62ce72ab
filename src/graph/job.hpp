// SPDX-License-Identifier: Apache-2.0
// The steps that every run of graph_visualize takes for each graph, whatever its source: write it, count it,
// report the progress.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "graph/output.hpp"
#include "graph/plan.hpp"
#include "graph/rank_graph.hpp"

namespace msprobe {
class Progress;
}

namespace msprobe::graph {

/// Counts the results of comparing nodes, for the lines on the terminal.
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

struct GraphResult {
  std::string file;  // empty: no rank could be read
  std::size_t nodes = 0;
  std::size_t ranks = 0;           // in the database, of all steps
  std::optional<NodeTally> tally;  // of the compared nodes
  std::vector<std::string> warnings;
  std::vector<std::string> unconnected;  // one line per node
  std::vector<std::string> problems;     // ranks that are missing in the database, and why
};

/// Reports how much of the work is done.
struct GraphProgress {
  Progress* line = nullptr;
  std::function<void(double percent)> tell;  // may be empty
};

class GraphJob {
 public:
  /// `parts`: the number of graphs; `with_edges`: the database shows communication between ranks.
  GraphJob(const GraphOptions& options, std::size_t parts, bool with_edges, const GraphProgress& progress);

  GraphResult result;
  GraphOutput& output() { return *output_; }
  /// The extent of the graphs written so far.
  const GraphExtent& extent() const { return extent_; }
  /// The state that carries the diagnosis to the rank's next step; null if origins of errors are switched
  /// off.
  diagnosis::RankHistory* history(std::int64_t rank) {
    return options_.origins ? &histories_[rank] : nullptr;
  }

  /// Writes a graph, or two, after output().begin(). `begins`: the share of the current part that is done
  /// already.
  void write(const GraphPlace& place, const NodeSource& graph, double begins = 0);
  void write(const GraphPlace& place, const GraphPair& pair, double begins = 0);
  /// Counts a graph that was written.
  void count(const GraphPlace& place, std::size_t nodes, std::uint32_t micro_steps);
  void tell_unconnected(const RankGraph& graph);

  /// Announces work that takes some time; `nodes`: the number of nodes, if it is known.
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
  std::map<std::int64_t, diagnosis::RankHistory> histories_;  // by rank, carried from step to step
};

}  // namespace msprobe::graph
