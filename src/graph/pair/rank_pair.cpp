// SPDX-License-Identifier: Apache-2.0
#include "graph/pair/rank_pair.hpp"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include "graph/rank_source.hpp"
#include "measuring/choose_mode.hpp"
#include "measuring/scalar_xors.hpp"
#include "support/error.hpp"
#include "support/parallel.hpp"
#include "support/text.hpp"

namespace msprobe::graph {
namespace {

/// A rank and all that its dump.json holds.
struct LoadedRank {
  RankGraph graph;
  dump::Side items;
  std::optional<dump::ConstructBeside> construct;

  void load(const std::string& folder, const model_tree::TreeTraits& traits) {
    graph = read_rank_graph(folder, traits, &items);
    construct.emplace(folder + "/dump.json");
  }
};

std::string_view framework_of(const LoadedRank& rank) {
  const std::string& framework = rank.items.header.framework;
  return framework.empty() ? "pytorch" : std::string_view(framework);
}

ComparedBy compared_by(const LoadedRank& target, const LoadedRank& golden) {
  const compare::Mode mode = compare::choose_mode(target.items, golden.items);
  if (target.items.header.task == "structure") return ComparedBy::structure;
  if (mode == compare::Mode::tensor) return ComparedBy::tensors;
  return mode == compare::Mode::md5 ? ComparedBy::md5 : ComparedBy::statistics;
}

}  // namespace

struct RankPair::Impl {
  Impl(const std::string& target_folder, const std::string& golden_folder, const RankPairOptions& options,
       diagnosis::RankHistory* past) {
    const std::array<std::string, 2> folders = {target_folder, golden_folder};
    parallel_for(ranks.size(), [&](std::size_t i) { ranks[i].load(folders[i], options.tree); });
    auto& [target, golden] = ranks;
    // MSAdapter has PyTorch's names.
    if (options.pair.pairing != NodePairing::layers && framework_of(target) != framework_of(golden) &&
        target.items.header.is_mindspore() != golden.items.header.is_mindspore()) {
      throw FormatError(fmt::format(
          "{} is of {}, {} of {}: two frameworks are compared by the structure of the model, with -lm",
          display(target.items.json), display(framework_of(target)), display(golden.items.json),
          display(framework_of(golden))));
    }
    task = compared_by(target, golden);
    if (task == ComparedBy::md5 && !options.pair.traits.rank.judge.xors_as_written) {
      for (LoadedRank& rank : ranks) compare::show_scalar_xors_as_numbers(rank.items);
    }
    DataTraits data = options.data;
    data.add_checksums = task == ComparedBy::md5;
    if (data.add_checksums) data.drop_checksums = false;
    target_source.emplace(target.graph, data, options.overflow_check);
    golden_source.emplace(golden.graph, data, options.overflow_check);
    const bool by_arguments = options.pair.traits.same_arguments;
    const RankSource target_arguments(target.graph, {}, false);
    const RankSource golden_arguments(golden.graph, {}, false);
    pair.emplace(GraphSide{*target_source, target.graph.built.tree, std::move(target.items),
                           &*target.construct, by_arguments ? &target_arguments : nullptr},
                 GraphSide{*golden_source, golden.graph.built.tree, std::move(golden.items),
                           &*golden.construct, by_arguments ? &golden_arguments : nullptr},
                 task, options.pair, compare::default_rules(), past);
  }

  std::array<LoadedRank, 2> ranks;
  ComparedBy task = ComparedBy::statistics;
  std::optional<RankSource> target_source;
  std::optional<RankSource> golden_source;
  std::optional<GraphPair> pair;
};

RankPair::RankPair(const std::string& target, const std::string& golden, const RankPairOptions& options,
                   diagnosis::RankHistory* past)
    : impl_(std::make_unique<Impl>(target, golden, options, past)) {}

RankPair::~RankPair() = default;

const NodeSource& RankPair::target() const {
  return impl_->pair->target();
}

const NodeSource& RankPair::golden() const {
  return impl_->pair->golden();
}

const RankGraph& RankPair::target_graph() const {
  return impl_->ranks[0].graph;
}

const RankGraph& RankPair::golden_graph() const {
  return impl_->ranks[1].graph;
}

ComparedBy RankPair::task() const {
  return impl_->task;
}

std::uint32_t RankPair::micro_steps() const {
  return impl_->pair->micro_steps();
}

const std::vector<std::string>& RankPair::warnings() const {
  return impl_->pair->warnings();
}

}  // namespace msprobe::graph
