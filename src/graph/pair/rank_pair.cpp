// SPDX-License-Identifier: Apache-2.0
#include "graph/pair/rank_pair.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <string_view>
#include <utility>

#include "measuring/scalar_xors.hpp"
#include "support/error.hpp"
#include "support/parallel.hpp"
#include "support/text.hpp"

namespace msprobe::graph {
namespace {

std::string_view framework_of(const dump::Side& items) {
  const std::string& framework = items.header.framework;
  return framework.empty() ? "pytorch" : std::string_view(framework);
}

}  // namespace

GraphRankPair::GraphRankPair(const std::string& target, const std::string& golden,
                             const GraphOptions& options, diagnosis::RankHistory* past) {
  const std::array<std::string, 2> folders = {target, golden};
  parallel_for(ranks_.size(), [&](std::size_t i) {
    ranks_[i].graph = read_rank_graph(folders[i], &ranks_[i].items);
    ranks_[i].construct.emplace(folders[i] + "/dump.json");
  });
  const dump::Side& ours = ranks_[0].items;
  const dump::Side& theirs = ranks_[1].items;
  // MSAdapter has PyTorch's names.
  if (options.pair.pairing != NodePairing::layers && framework_of(ours) != framework_of(theirs) &&
      ours.header.is_mindspore() != theirs.header.is_mindspore()) {
    throw FormatError(fmt::format(
        "{} is of {}, {} of {}: different frameworks can only be compared with a layer mapping (-lm)",
        display(ours.json), display(framework_of(ours)), display(theirs.json),
        display(framework_of(theirs))));
  }
  const ComparedBy task = compared_by(ours, theirs);
  DataOptions data = options.data;
  data.compared = data.add_checksums = task == ComparedBy::md5;
  for (LoadedRank& rank : ranks_) {
    if (data.add_checksums && !options.pair.python.xors_as_written)
      measuring::show_scalar_xors_as_numbers(rank.items);
    rank.source.emplace(rank.graph, data, options.overflow_check);
  }
  pair_.emplace(side_of(ranks_[0]), side_of(ranks_[1]), task, options.pair, pairing::default_rules(), past);
}

GraphSide GraphRankPair::side_of(LoadedRank& rank) {
  return {*rank.source, rank.graph.built.tree, std::move(rank.items), &*rank.construct};
}

}  // namespace msprobe::graph
