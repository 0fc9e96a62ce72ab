// SPDX-License-Identifier: Apache-2.0
#include "graph/build.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "dump/construct_json.hpp"
#include "dump/entry.hpp"
#include "dump/entry_items.hpp"
#include "dump/member_stream.hpp"
#include "graph/data/overflow.hpp"
#include "graph/edges.hpp"
#include "graph/plan.hpp"
#include "graph/rank_graph.hpp"
#include "measuring/scalar_xors.hpp"
#include "support/error.hpp"
#include "support/parallel.hpp"
#include "support/text.hpp"

namespace msprobe::graph {
namespace {

/// The graph of one rank by itself.
class RankSource final : public NodeSource {
 public:
  /// The rank must outlive this.
  RankSource(const RankGraph& rank, const DataOptions& options, bool overflow_check)
      : rank_(rank), options_(options), overflow_check_(overflow_check) {}

  const model_tree::ModelTree& tree() const override { return rank_.built.tree; }
  std::optional<std::string> tensor_folder() const override {
    return options_.as_release8 ? rank_.header.data_directory : rank_.tensor_folder();
  }
  NodeData data(model_tree::NodeIndex node) const override {
    NodeData data;
    const std::string_view name = tree().name(node);
    const dump::EntryPlace* place = rank_.place(name);
    if (place == nullptr) return data;
    dump::Entry entry;
    dump::read_entry_at(*rank_.json, place->offset, place->size, entry, name);
    const dump::EntryItems items = dump::items_of(name, entry, place->size, rank_.json->name());
    data.items = item_texts(items, entry, name, options_);
    if (overflow_check_) data.overflow_level = overflow_level(name, entry, options_);
    data.communication = communication_of(name, entry);
    return data;
  }

 private:
  const RankGraph& rank_;
  DataOptions options_;
  bool overflow_check_ = false;
};

/// A rank and all that its dump.json holds.
struct LoadedRank {
  RankGraph graph;
  dump::Side items;
  std::optional<dump::ConstructBeside> construct;
  std::optional<RankSource> source;

  GraphSide side() { return {*source, graph.built.tree, std::move(items), &*construct}; }
};

std::string_view framework_of(const dump::Side& items) {
  const std::string& framework = items.header.framework;
  return framework.empty() ? "pytorch" : std::string_view(framework);
}

void write_one(const GraphPlace& place, const GraphOptions& options, GraphJob& job) {
  const RankGraph graph = read_rank_graph(place.target);
  job.write(place, RankSource(graph, options.data, options.overflow_check));
  job.tell_unconnected(graph);
}

void write_pair(const GraphPlace& place, const GraphOptions& options, GraphJob& job) {
  const std::array<std::string, 2> folders = {place.target, place.golden};
  std::array<LoadedRank, 2> ranks;
  parallel_for(ranks.size(), [&](std::size_t i) {
    ranks[i].graph = read_rank_graph(folders[i], &ranks[i].items);
    ranks[i].construct.emplace(folders[i] + "/dump.json");
  });
  const dump::Side& ours = ranks[0].items;
  const dump::Side& theirs = ranks[1].items;
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
  for (LoadedRank& rank : ranks) {
    if (data.add_checksums && !options.pair.python.xors_as_written)
      measuring::show_scalar_xors_as_numbers(rank.items);
    rank.source.emplace(rank.graph, data, options.overflow_check);
  }
  const std::optional<ComparedBy> before = job.extent().task;
  const GraphPair pair(ranks[0].side(), ranks[1].side(), task, options.pair, pairing::default_rules(),
                       job.history(place.rank));
  if (!options.as_vis && before && *before != task)
    throw FormatError(fmt::format("{}: compared by a different kind of data than the ranks before it",
                                  display(place.target)));
  job.write(place, pair);
  for (const LoadedRank& rank : ranks) job.tell_unconnected(rank.graph);
}

}  // namespace

GraphResult build_graph(const GraphOptions& options, const GraphProgress& progress) {
  const GraphPlan plan = make_plan(options.target, options.golden);
  GraphJob job(options, plan.graphs.size(), !plan.one_folder, progress);
  job.result.warnings = plan.warnings;
  job.result.problems = plan.problems;
  for (const GraphPlace& place : plan.graphs) {
    job.output().begin(place);
    try {
      options.compares() ? write_pair(place, options, job) : write_one(place, options, job);
    } catch (const Error& error) {
      if (job.output().failed() || plan.graphs.size() == 1) throw;
      job.output().take_back();
      job.result.problems.emplace_back(error.what());
    }
    job.end_part();
  }
  return job.finish();
}

}  // namespace msprobe::graph
