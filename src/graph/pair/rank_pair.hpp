// SPDX-License-Identifier: Apache-2.0
// A rank and its reference, read and compared.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "graph/data/item_texts.hpp"
#include "graph/pair/graph_pair.hpp"
#include "graph/rank_graph.hpp"
#include "model_tree/build_tree.hpp"

namespace msprobe::graph {

struct RankPairOptions {
  bool overflow_check = false;
  model_tree::TreeTraits tree;
  DataTraits data;
  PairOptions pair;
};

class RankPair {
 public:
  /// The folders of both. IoError, FormatError: a file cannot be read, or the two do not go together.
  /// `past`: as for GraphPair.
  RankPair(const std::string& target, const std::string& golden, const RankPairOptions& options,
           diagnosis::RankHistory* past = nullptr);
  ~RankPair();

  const NodeSource& target() const;
  const NodeSource& golden() const;
  const RankGraph& target_graph() const;
  const RankGraph& golden_graph() const;
  ComparedBy task() const;
  std::uint32_t micro_steps() const;
  const std::vector<std::string>& warnings() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace msprobe::graph
