// SPDX-License-Identifier: Apache-2.0
#include "graph/merge/build_merged.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "diagnosis/rank_diagnosis.hpp"
#include "dump/side.hpp"
#include "dump/tree.hpp"
#include "graph/config.hpp"
#include "graph/database/database.hpp"
#include "graph/database/graph_rows.hpp"
#include "graph/merge/json_export.hpp"
#include "graph/merge/merge_ranks.hpp"
#include "graph/merge/merged_items.hpp"
#include "graph/merge/merged_source.hpp"
#include "graph/pair/graph_pair.hpp"
#include "measuring/choose_mode.hpp"
#include "pairing/joins.hpp"
#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/output_file.hpp"
#include "support/progress.hpp"
#include "support/text.hpp"

namespace msprobe::graph {
namespace {

/// The folders of ranks by their steps; a folder that holds ranks is step 0.
std::map<std::int64_t, std::string> steps_of(const std::string& folder) {
  std::map<std::int64_t, std::string> steps;
  const std::vector<std::string> names = names_in(folder);
  for (const std::string& name : names) {
    const auto number = dump::number_after(name, "step");
    if (!number) break;
    steps.emplace(*number, folder + "/" + name);
  }
  if (steps.size() != names.size() || names.empty()) return {{0, folder}};
  return steps;
}

/// A merged graph, and what of its nodes is compared.
struct MergedGraph {
  MergedSource source;
  dump::Side items;
  std::shared_ptr<compare::Joins> joins;  // null: the items are put together already
};

class MergedRun {
 public:
  MergedRun(const GraphOptions& options, const std::vector<ParallelPlan>& plans, bool as_json,
            bool python_rules, const GraphProgress& progress)
      : options_(options),
        plans_(plans),
        as_json_(as_json),
        traits_(merge_traits(python_rules)),
        progress_(progress) {}

  GraphResult run() {
    std::map<std::int64_t, std::string> goldens;
    if (is_compare()) goldens = steps_of(options_.golden);
    const std::map<std::int64_t, std::string> targets = steps_of(options_.target);
    steps_ = static_cast<double>(targets.size());
    for (const auto& [step, folder] : targets) {
      if (!is_compare()) {
        build(step, folder);
      } else if (const auto golden = goldens.find(step); golden != goldens.end()) {
        compare(step, folder, golden->second);
        goldens.erase(golden);
      } else {
        tell_one_sided(folder);
      }
      ++done_;
      tell(0);
    }
    for (const auto& [step, folder] : goldens) tell_one_sided(folder);
    if (extent_.ranks.empty())
      throw UsageError(display(options_.target) + ": has no step in common with the reference");
    if (as_json_) {
      OutputFile::commit_all(files_);
    } else {
      finish();
    }
    return std::move(result_);
  }

 private:
  bool is_compare() const { return !options_.golden.empty(); }

  void tell_one_sided(const std::string& folder) {
    result_.warnings.push_back(display(folder) + ": the other side has no such step; it is left out");
  }

  std::unique_ptr<MergedRanks> merged(const std::string& folder, std::size_t side) {
    auto ranks = read_ranks(folder, options_.tree, progress_.line);
    begin("merged: " + display(folder), 0);
    merge_ranks(*ranks, plans_[side], traits_, !is_compare() ? "" : side == 0 ? "target: " : "reference: ");
    for (std::string& warning : ranks->warnings) result_.warnings.push_back(std::move(warning));
    constexpr std::size_t kShownReplicas = 5;
    for (std::size_t i = 0; i < std::min(ranks->replicas.size(), kShownReplicas); ++i)
      result_.warnings.push_back(std::move(ranks->replicas[i]));
    if (ranks->replicas.size() > kShownReplicas) {
      result_.warnings.push_back(fmt::format("{} more values differ between ranks that should hold the same",
                                             human_count(ranks->replicas.size() - kShownReplicas)));
    }
    if (options_.tree.lose_unconnected) return ranks;
    for (const MergeRank& rank : ranks->ranks) {
      for (std::string& line : unconnected_lines(rank.graph)) result_.unconnected.push_back(std::move(line));
    }
    return ranks;
  }

  void begin(std::string what, std::size_t nodes) const {
    if (progress_.line != nullptr) progress_.line->begin(std::move(what), nodes, nodes == 0 ? "" : "nodes");
  }

  /// `part`: of the step that is worked on.
  void tell(double part) const {
    if (progress_.tell) progress_.tell(100 * (done_ + part) / steps_);
  }

  /// Of a graph that is written; what is ahead of that counts for half of the work.
  GraphObserver observer_of(const NodeSource& source, double begins, double ends) const {
    begin("graph", source.tree().size() - 1);
    GraphObserver observer;
    observer.written = [this, begins, ends, so_far = 0.0,
                        nodes = static_cast<double>(source.tree().size() - 1)](std::size_t more) mutable {
      so_far += static_cast<double>(more);
      if (progress_.line != nullptr) progress_.line->advance(more);
      tell(begins + (ends - begins) * so_far / nodes);
    };
    return observer;
  }

  /// Nothing is made before all is known to go together.
  Database& database() {
    if (!database_) {
      create_directories(options_.output);
      result_.file = result_path(options_.output, is_compare() ? "compare" : "build");
      database_.emplace(result_.file);
    }
    return *database_;
  }

  void build(std::int64_t step, const std::string& folder) {
    const auto ranks = merged(folder, 0);
    for (const auto& graph : ranks->graphs) {
      const MergedSource source(graph, options_.data, options_.overflow_check, traits_);
      if (as_json_) {
        result_.file = options_.output;
        const std::string place = fmt::format("{}/step{}/rank{}", options_.output, step, graph->rank());
        result_.nodes += export_json(source, place, files_);
      } else {
        result_.nodes +=
            write_graph({"NPU", step, graph->rank()}, source, database(), observer_of(source, 0.5, 1));
      }
      count(step, graph->rank(), source.tree().micro_steps);
    }
  }

  void compare(std::int64_t step, const std::string& target_folder, const std::string& golden_folder) {
    const auto targets = merged(target_folder, 0);
    tell(0.1);
    const auto goldens = merged(golden_folder, 1);
    tell(0.2);
    if (targets->graphs.size() != goldens->graphs.size()) {
      throw UsageError(
          fmt::format("merged, the target has {} models and the reference {}: copies of data parallelism "
                      "are compared one by one",
                      targets->graphs.size(), goldens->graphs.size()));
    }
    for (std::size_t i = 0; i < targets->graphs.size(); ++i) {
      const std::int64_t rank = targets->graphs[i]->rank();
      begin("compared", 0);
      MergedGraph target = graph_of(*targets, i);
      MergedGraph golden = graph_of(*goldens, i);
      const ComparedBy task = compared_by(target, golden);
      PairOptions pair_options = options_.pair;
      pair_options.pairing = NodePairing::calls;
      pair_options.traits.rank.judge.merged_ranks = true;
      pair_options.traits.across_ranks = !traits_.lose_others;
      const GraphPair pair(
          {target.source, target.source.own_tree(), std::move(target.items), nullptr, nullptr, target.joins},
          {golden.source, golden.source.own_tree(), std::move(golden.items), nullptr, nullptr, golden.joins},
          task, pair_options, compare::default_rules(), options_.origins ? &histories_[rank] : nullptr);
      if (target.joins && task != ComparedBy::structure) {
        target.source.follow(target.joins, pair.result().target);
        golden.source.follow(golden.joins, pair.result().golden);
      }
      if (!result_.tally) result_.tally.emplace();
      GraphObserver observer = observer_of(pair.target(), 0.5, 0.75);
      observer.node = [&](std::int64_t, std::string_view node, const NodeData& data) {
        result_.tally->add_target("", node, data);
      };
      result_.nodes += write_graph({"NPU", step, rank}, pair.target(), database(), observer);
      observer = observer_of(pair.golden(), 0.75, 1);
      observer.node = [&](std::int64_t, std::string_view node, const NodeData& data) {
        result_.tally->add_golden(node, data);
      };
      result_.nodes += write_graph({"Bench", step, rank}, pair.golden(), database(), observer);
      for (const std::string& warning : pair.warnings()) result_.warnings.push_back(warning);
      count(step, rank, pair.micro_steps());
    }
  }

  MergedGraph graph_of(const MergedRanks& merged, std::size_t number) const {
    MergedGraph graph{
        MergedSource(merged.graphs[number], options_.data, options_.overflow_check, traits_), {}, {}};
    if (traits_.merges_by_class) {
      graph.items = merged_items(graph.source);
    } else {
      SplitItems split = split_items(graph.source, merged.ranks);
      graph.items = std::move(split.items);
      graph.joins = std::move(split.joins);
    }
    return graph;
  }

  ComparedBy compared_by(const MergedGraph& target, const MergedGraph& golden) {
    const compare::Mode mode = compare::choose_mode(target.items, golden.items);
    ComparedBy task = ComparedBy::statistics;
    if (target.items.header.task == "structure") {
      task = ComparedBy::structure;
    } else if (mode == compare::Mode::md5) {
      throw UsageError(display(options_.target) +
                       ": checksums of parts say nothing of the whole; ranks that recorded "
                       "checksums are not merged for a comparison");
    } else if (mode == compare::Mode::tensor && !traits_.merges_by_class) {
      task = ComparedBy::tensors;
    } else if (mode == compare::Mode::tensor && !extent_.task) {
      result_.warnings.push_back("tensors of merged ranks are compared by their statistics");
    }
    extent_.task = task;
    return task;
  }

  void count(std::int64_t step, std::int64_t rank, std::uint32_t micro_steps) {
    ++result_.ranks;
    extent_.micro_steps = std::max(extent_.micro_steps, micro_steps);
    extent_.ranks.insert(rank);
    extent_.steps.insert(step);
  }

  void finish() {
    write_config(extent_, options_.overflow_check, database());
    begin("indexes", 0);
    database().commit();
  }

  const GraphOptions& options_;
  const std::vector<ParallelPlan>& plans_;
  bool as_json_;
  MergeTraits traits_;
  const GraphProgress& progress_;
  double steps_ = 1;
  double done_ = 0;  // steps
  GraphResult result_;
  std::optional<Database> database_;
  std::vector<OutputFile> files_;
  std::map<std::int64_t, diagnosis::RankHistory> histories_;  // of the merged ranks, step by step
  GraphExtent extent_;
};

}  // namespace

MergeTraits merge_traits(bool python_rules) {
  MergeTraits traits;
  traits.lose_others = traits.number_all_parts = traits.first_rank_borders = python_rules;
  traits.first_rank_levels = traits.trusts_replicas = traits.first_rank_shards = traits.outer_linears_only =
      traits.only_senders = traits.merges_by_class = python_rules;
  return traits;
}

GraphResult build_merged(const GraphOptions& options, const std::vector<ParallelPlan>& plans, bool as_json,
                         bool python_rules, const GraphProgress& progress) {
  GraphResult result = MergedRun(options, plans, as_json, python_rules, progress).run();
  if (progress.line != nullptr) progress.line->end();
  return result;
}

}  // namespace msprobe::graph
