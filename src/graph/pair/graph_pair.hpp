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

/// What can be otherwise for the sake of the Python tool; the defaults are our way.
struct PairTraits {
  bool pairs_by_name = false;       // even where the calls of both sides are not the same ones
  bool same_ancestors = false;      // such pairs stand below pairs
  bool items_by_position = false;   // keyword arguments, too
  bool tells_counts = true;         // a warning where one side calls an operation more often (-fm)
  bool across_ranks = false;        // of merged ranks
  bool old_stacks_only = false;     // -lm takes no call stacks of today's stack.json
  bool number_from_name = false;    // golden nodes without partner: the micro step is a part of the name
  bool steps_of_target = false;     // how many there are, however many golden has
  bool unmeasured_parents = false;  // collections of operations pass where tensors were compared
  bool unjudged_collections_pass = false;  // those that hold nothing that was judged
  bool empty_differs = false;   // operations without defined result are errors where checksums count
  bool python_texts = false;    // blanks and TABs among the numbers
  bool same_arguments = false;  // partners have arguments of the same types and shapes (-fm: shapes)
  compare::RankTraits rank;
};
PairTraits python_pair_traits();

enum class NodePairing : std::uint8_t { automatic, calls, layers };

struct PairOptions {
  NodePairing pairing = NodePairing::automatic;
  compare::LayerMapping layers;
  bool print_rows = false;   // a line for each pair of tensors
  bool as_release8 = false;  // nodes and items say what those of releases 8.x do
  PairTraits traits;
};

/// One of the two graphs. What is referred to outlives the pair.
struct GraphSide {
  const NodeSource& source;
  model_tree::ModelTree& tree;  // that of the source
  dump::Side items;             // the data of nodes, by entries of their names
  const dump::ConstructBeside* construct = nullptr;
  const NodeSource* arguments = nullptr;  // whose types and shapes tell which nodes may pair; may be null
  std::shared_ptr<compare::Joins> joins = nullptr;  // of merged ranks: what each holds of the items
};

class GraphPair {
 public:
  /// Compares. Throws what the readers of tensors and of stack.json throw.
  /// `past`: given, it is judged where errors come from, as the next step of that rank.
  GraphPair(GraphSide target, GraphSide golden, ComparedBy task, const PairOptions& options,
            const compare::Rules& rules, diagnosis::RankHistory* past = nullptr);
  ~GraphPair();

  const NodeSource& target() const;
  const NodeSource& golden() const;
  std::uint32_t micro_steps() const;
  const std::vector<std::string>& warnings() const;
  const compare::RankResult& result() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace msprobe::graph
