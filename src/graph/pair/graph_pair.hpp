// SPDX-License-Identifier: Apache-2.0
// Two graphs compared: which nodes belong together, and what the comparison says of those under test
// (docs/rules.md, "The colour of a node").
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
  bool print_rows = false;    // a line for each pair of tensors
  bool as_release8 = false;   // nodes and items say what those of releases 8.x do
  bool across_ranks = false;  // operations between modules pair whichever of the merged ranks ran them
  /// The values and colours of the Python tool: nodes pair by name below pairs, without a remark; blanks and
  /// TABs are among the numbers; collections of operations pass where tensors were compared or nothing was
  /// judged; an operation without a defined result is an error where checksums count.
  bool python_values = false;
  measuring::PythonRules python;
};

/// One of the two graphs. What is referred to outlives the pair.
struct GraphSide {
  const NodeSource& source;
  model_tree::ModelTree& tree;  // that of the source
  dump::Side items;             // the data of nodes, by entries of their names
  const dump::ConstructBeside* construct = nullptr;
  std::shared_ptr<pairing::Joins> joins = nullptr;  // of merged ranks: what each holds of the items
};

ComparedBy compared_by(const dump::Side& target, const dump::Side& golden);

class GraphPair {
 public:
  /// Compares. Throws what the readers of tensors and of stack.json throw.
  /// `past`: given, it is judged where errors come from, as the next step of that rank.
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
  /// Pairs of other names are told, unless the user named them.
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
