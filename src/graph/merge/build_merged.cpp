// SPDX-License-Identifier: Apache-2.0
#include "graph/build.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dump/entry.hpp"
#include "dump/side.hpp"
#include "dump/tree.hpp"
#include "graph/merge/merge_ranks.hpp"
#include "graph/merge/merged_source.hpp"
#include "graph/merge/node_content.hpp"
#include "graph/pair/graph_pair.hpp"
#include "pairing/joins.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/json_writer.hpp"
#include "support/output_file.hpp"
#include "support/parallel.hpp"
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

/// The number of nodes in a block: memory never holds the data of all ranks at once.
constexpr std::size_t kNodesOfBlock = 4096;

/// A node's entry for the file, and the data that its ranks hold.
struct MadeEntry {
  std::string text;
  SplitContent split;
};

void add_parts(pairing::Joins& joins, const SplitContent& split, const MergeGraph& graph, NodeIndex index,
               const std::unordered_map<const MergeRank*, std::uint32_t>& numbers) {
  const MergeNode& node = graph.node(index);
  const dump::Side& main = split.content->items.side;
  bool sum = node.joint && node.joint->reduced != kNoNode;
  for (std::size_t k = 0; k < main.items.size(); ++k) {
    std::vector<const dump::Item*> partners;
    if (!sum || main.items[k].state != dump::State::output) {
      partners = split.partners(k);
    } else {
      sum = false;  // the entry has it as its first output
    }
    joins.add_part(numbers.at(&rank_of(node, main.items[k])), main, main.items[k]);
    for (std::size_t i = 0; i < partners.size(); ++i) {
      const MergedData::Partner& partner = node.joint->partners[i];
      joins.add_part(numbers.at(&rank_of(partner.graph->node(partner.node), *partners[i])),
                     split.others[i]->items.side, *partners[i]);
    }
    joins.end_item();
  }
}

/// The data of the first rank, with the data that the other ranks hold.
struct SplitItems {
  dump::Side items;
  std::shared_ptr<pairing::Joins> joins;
};

SplitItems split_items(const MergedSource& source, const std::vector<MergeRank>& ranks) {
  const MergeGraph& graph = source.graph();
  std::vector<pairing::Joins::JoinedRank> names;
  std::unordered_map<const MergeRank*, std::uint32_t> numbers;
  for (const MergeRank& rank : ranks) {
    numbers[&rank] = static_cast<std::uint32_t>(names.size());
    names.push_back({rank.number, rank.graph.folder + "/dump_tensor_data"});
  }
  SplitItems split;
  split.joins = std::make_shared<pairing::Joins>(std::move(names));
  const RankGraph& main = graph.main_rank().graph;
  JsonWriter json;  // a dump.json
  json.open_object();
  json.member("task", main.header.task);
  json.member("level", main.header.level);
  json.member("framework", main.header.framework);
  json.open_object("data");
  std::vector<MadeEntry> entries(kNodesOfBlock);
  const std::size_t size = source.tree().size();
  for (std::size_t begin = 0; begin < size; begin += kNodesOfBlock) {
    const std::size_t count = std::min(kNodesOfBlock, size - begin);
    parallel_blocks(count, [&](std::size_t i) {
      const NodeIndex node = source.origin(static_cast<NodeIndex>(begin + i));
      if (node == kNoNode) return;
      const std::unique_ptr<MergedData>& joint = graph.node(node).joint;
      entries[i].split = split_content(graph.node(node), joint.get());
      if (!entries[i].split.content) return;
      const bool sum = joint && joint->reduced != kNoNode;
      dump::append_json(entries[i].text,
                        sum ? joined_content(graph, node).content->entry : entries[i].split.content->entry, 0,
                        0, 0);
    });
    for (std::size_t i = 0; i < count; ++i) {
      const auto node = static_cast<NodeIndex>(begin + i);
      const MadeEntry made = std::exchange(entries[i], {});
      if (made.text.empty()) continue;
      json.key(source.tree().name(node));
      json.raw(made.text);
      add_parts(*split.joins, made.split, graph, source.origin(node), numbers);
    }
  }
  json.close();
  json.close();
  split.items = dump::load_side(*memory_source(json.take(), main.json->name()));
  return split;
}

/// A merged graph, and the data of its nodes for the comparison.
struct MergedGraph {
  MergedSource source;
  SplitItems split;

  GraphSide side() { return {source, source.own_tree(), std::move(split.items), nullptr, split.joins}; }
};

/// Reading and merging counts for half of the work.
constexpr double kBeforeWriting = 0.5;

class MergedRun {
 public:
  MergedRun(const GraphOptions& options, const std::vector<ParallelPlan>& plans, bool as_json,
            const GraphProgress& progress)
      : options_(options),
        plans_(plans),
        as_json_(as_json),
        progress_(progress),
        targets_(steps_of(options.target)),
        job_(options, targets_.size(), false, progress) {}

  GraphResult run() {
    std::map<std::int64_t, std::string> goldens;
    if (options_.compares()) goldens = steps_of(options_.golden);
    for (const auto& [step, folder] : targets_) {
      if (!options_.compares()) {
        build(step, folder);
      } else if (const auto golden = goldens.find(step); golden != goldens.end()) {
        compare(step, folder, golden->second);
        goldens.erase(golden);
      } else {
        tell_one_sided(folder);
      }
      job_.end_part();
      job_.tell(0);
    }
    for (const auto& [step, folder] : goldens) tell_one_sided(folder);
    if (job_.result.ranks == 0)
      throw UsageError(display(options_.target) + ": no step in common with the golden dump");
    if (!as_json_) return job_.finish();
    OutputFile::commit_all(files_);
    job_.result.file = options_.output;
    return std::move(job_.result);
  }

 private:
  void tell_one_sided(const std::string& folder) {
    job_.result.warnings.push_back(display(folder) + ": the other side has no such step; it was skipped");
  }

  std::unique_ptr<MergedRanks> merged(const std::string& folder, std::size_t side) {
    auto ranks = read_ranks(folder, progress_.line);
    job_.begin("merged: " + display(folder));
    const char* const name = !options_.compares() ? "" : side == 0 ? "target: " : "reference: ";
    merge_ranks(*ranks, plans_[side], name);
    std::vector<std::string>& warnings = job_.result.warnings;
    for (std::string& warning : ranks->warnings) warnings.push_back(std::move(warning));
    constexpr std::size_t kShownReplicas = 5;
    for (std::size_t i = 0; i < std::min(ranks->replicas.size(), kShownReplicas); ++i)
      warnings.push_back(std::move(ranks->replicas[i]));
    if (ranks->replicas.size() > kShownReplicas) {
      warnings.push_back(fmt::format("{} more values differ between ranks that should be equal",
                                     human_count(ranks->replicas.size() - kShownReplicas)));
    }
    for (const MergeRank& rank : ranks->ranks) job_.tell_unconnected(rank.graph);
    return ranks;
  }

  void build(std::int64_t step, const std::string& folder) {
    const auto ranks = merged(folder, 0);
    for (const auto& graph : ranks->graphs) {
      const MergedSource source(graph, options_.data, options_.overflow_check);
      const GraphPlace place{step, graph->rank(), "", folder, ""};
      if (as_json_) {
        const std::string path = fmt::format("{}/step{}/rank{}", options_.output, step, place.rank);
        job_.count(place, export_json(source, path, files_), source.tree().micro_steps);
      } else {
        job_.output().begin(place);
        job_.write(place, source, kBeforeWriting);
      }
    }
  }

  void compare(std::int64_t step, const std::string& target_folder, const std::string& golden_folder) {
    const auto targets = merged(target_folder, 0);
    job_.tell(0.1);
    const auto goldens = merged(golden_folder, 1);
    job_.tell(0.2);
    if (targets->graphs.size() != goldens->graphs.size()) {
      throw UsageError(
          fmt::format("merged, the target has {} models and the golden dump {}: data-parallel copies "
                      "are compared one by one",
                      targets->graphs.size(), goldens->graphs.size()));
    }
    for (std::size_t i = 0; i < targets->graphs.size(); ++i) {
      const GraphPlace place{step, targets->graphs[i]->rank(), "", target_folder, golden_folder};
      job_.begin("compared");
      MergedGraph target = graph_of(*targets, i);
      MergedGraph golden = graph_of(*goldens, i);
      const ComparedBy task = task_of(target, golden);
      PairOptions pair_options = options_.pair;
      pair_options.pairing = NodePairing::calls;
      pair_options.across_ranks = true;
      const GraphPair pair(target.side(), golden.side(), task, pair_options, pairing::default_rules(),
                           job_.history(place.rank));
      if (task != ComparedBy::structure) {
        target.source.follow(target.split.joins, pair.result().target);
        golden.source.follow(golden.split.joins, pair.result().golden);
      }
      job_.output().begin(place);
      job_.write(place, pair, kBeforeWriting);
    }
  }

  MergedGraph graph_of(const MergedRanks& merged, std::size_t number) const {
    MergedGraph graph{MergedSource(merged.graphs[number], options_.data, options_.overflow_check), {}};
    graph.split = split_items(graph.source, merged.ranks);
    return graph;
  }

  ComparedBy task_of(const MergedGraph& target, const MergedGraph& golden) {
    const ComparedBy task = compared_by(target.split.items, golden.split.items);
    if (task == ComparedBy::md5) {
      throw UsageError(display(options_.target) +
                       ": checksums of parts say nothing about the whole; ranks that recorded "
                       "checksums are not merged for a comparison");
    }
    return task;
  }

  const GraphOptions& options_;
  const std::vector<ParallelPlan>& plans_;
  bool as_json_;
  const GraphProgress& progress_;
  std::map<std::int64_t, std::string> targets_;  // folders, by step
  GraphJob job_;
  std::vector<OutputFile> files_;  // JSON
};

}  // namespace

GraphResult build_merged(const GraphOptions& options, const std::vector<ParallelPlan>& plans, bool as_json,
                         const GraphProgress& progress) {
  GraphResult result = MergedRun(options, plans, as_json, progress).run();
  if (progress.line != nullptr) progress.line->end();
  return result;
}

}  // namespace msprobe::graph
