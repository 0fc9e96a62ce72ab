// SPDX-License-Identifier: Apache-2.0
// A rank and its reference, read and compared.
#pragma once

#include <array>
#include <optional>
#include <string>

#include "dump/construct_json.hpp"
#include "dump/side.hpp"
#include "graph/options.hpp"
#include "graph/pair/graph_pair.hpp"
#include "graph/rank_graph.hpp"
#include "graph/rank_source.hpp"

namespace msprobe::graph {

class GraphRankPair {
 public:
  /// The folders of both. IoError, FormatError: a file cannot be read, or the two do not go together.
  /// `past`: as for GraphPair.
  GraphRankPair(const std::string& target, const std::string& golden, const GraphOptions& options,
                diagnosis::RankHistory* past = nullptr);

  const GraphPair& graphs() const { return *pair_; }
  const RankGraph& target() const { return ranks_[0].graph; }
  const RankGraph& golden() const { return ranks_[1].graph; }

 private:
  /// A rank and all that its dump.json holds.
  struct LoadedRank {
    RankGraph graph;
    dump::Side items;
    std::optional<dump::ConstructBeside> construct;
    std::optional<RankSource> source;
  };
  static GraphSide side_of(LoadedRank& rank);

  std::array<LoadedRank, 2> ranks_;
  std::optional<GraphPair> pair_;
};

}  // namespace msprobe::graph
