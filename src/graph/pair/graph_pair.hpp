// SPDX-License-Identifier: Apache-2.0
// Compares two graphs: pairs their nodes, and judges the nodes under test (docs/rules.md, "The colour of a
// node").
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "diagnosis/rank_diagnosis.hpp"
#include "dump/construct_json.hpp"
#include "dump/side.hpp"
#include "graph/config.hpp"
#include "graph/data/node_source.hpp"
#include "graph/pair/node_pairs.hpp"
#include "pairing/mapping_file.hpp"
#include "pairing/rules.hpp"
#include "verdict/result.hpp"

namespace msprobe::graph {

enum class NodePairing : std::uint8_t { automatic, calls, layers };

struct PairOptions {
  NodePairing pairing = NodePairing::automatic;
  pairing::LayerMapping layers;
  bool print_rows = false;    // print a line for each pair of tensors
  bool as_release8 = false;   // nodes and items have the results of releases 8.x
  bool across_ranks = false;  // operations between modules pair regardless of which merged rank ran them
  /// The values and colours of the Python tool: nodes pair by name below pairs, without a warning; blanks and
  /// TABs occur among the numbers; collections of operations pass if tensors were compared or nothing was
  /// judged; an operation without a defined result is an error if checksums are compared.
  bool python_values = false;
  measuring::PythonRules python;
};

/// One of the two graphs. The objects that it refers to must outlive the pair.
struct GraphSide {
  const NodeSource& source;
  model_tree::ModelTree& tree;  // that of the source
  dump::Side items;             // the data of nodes, by entries of their names
  const dump::ConstructBeside* construct = nullptr;
  std::shared_ptr<pairing::Joins> joins = nullptr;  // for merged ranks: the parts of each rank
};

ComparedBy compared_by(const dump::Side& target, const dump::Side& golden);

class GraphPair {
 public:
  /// Compares the graphs. With `past` it also judges where errors come from, as the next step of that rank.
  /// Throws what the readers of tensors and of stack.json throw.
  GraphPair(GraphSide target, GraphSide golden, ComparedBy task, const PairOptions& options,
            const pairing::Rules& rules, diagnosis::RankHistory* past = nullptr);
  GraphPair(const GraphPair&) = delete;
  GraphPair& operator=(const GraphPair&) = delete;

  const NodeSource& target() const { return *target_; }
  const NodeSource& golden() const { return *golden_; }
  ComparedBy task() const { return task_; }
  std::uint32_t micro_steps() const;
  const std::vector<std::string>& warnings() const { return pairs_.warnings; }
  const verdict::RankResult& result() const { return result_; }

 private:
  void pair_nodes(const GraphSide& target, const GraphSide& golden);
  std::vector<std::uint32_t> layer_partners(const dump::ConstructBeside* target,
                                            const dump::ConstructBeside* golden) const;
  void compare_items(const pairing::Rules& rules, diagnosis::RankHistory* past);
  /// Warns about pairs with different names, unless the user paired them.
  void tell_other_names();

  PairOptions options_;
  ComparedBy task_;
  model_tree::ModelTree& target_tree_;
  model_tree::ModelTree& golden_tree_;
  NodeEntries target_entries_;
  NodeEntries golden_entries_;
  NodePairs pairs_;
  std::shared_ptr<verdict::RankResult> shared_result_ = std::make_shared<verdict::RankResult>();
  verdict::RankResult& result_ = *shared_result_;
  std::unique_ptr<const NodeSource> target_;
  std::unique_ptr<const NodeSource> golden_;
};

}  // namespace msprobe::graph
