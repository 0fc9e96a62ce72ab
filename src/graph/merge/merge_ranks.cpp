// SPDX-License-Identifier: Apache-2.0
#include "graph/merge/merge_ranks.hpp"

#include <cstddef>
#include <map>
#include <set>
#include <utility>

#include "dump/tree.hpp"
#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/parallel.hpp"
#include "support/progress.hpp"
#include "support/text.hpp"

namespace msprobe::graph {
namespace {

class Strategy {
 public:
  Strategy(MergedRanks& merged, const ParallelPlan& plan, const ParallelGroups& groups)
      : merged_(merged), plan_(plan), groups_(groups) {
    for (const MergeRank& rank : merged.ranks) graphs_[rank.number] = std::make_shared<MergeGraph>(rank);
  }

  void merge() {
    const int size = plan_.rank_size;
    if (plan_.tp == 1 && plan_.pp == 1) {
      for (const MergeRank& rank : merged_.ranks) {
        const MergeGroup alone = {graphs_.at(rank.number)};
        gather_free_apis(alone);
        merged_.graphs.push_back(alone.front());
      }
    } else if (plan_.pp == 1) {
      for (const auto& ranks : groups_.tp) merge_shards(group_of(ranks));
    } else if (plan_.tp == 1) {
      for (const auto& ranks : groups_.pp) {
        const MergeGroup group = group_of(ranks);
        gather_free_apis(group);
        join(group);
        merged_.graphs.push_back(group.front());
      }
    } else if (static_cast<std::int64_t>(plan_.tp) * plan_.pp == size) {
      MergeGroup all;
      for (const auto& [rank, graph] : graphs_) all.push_back(graph);
      gather_free_apis(all);
      MergeGroup joined;
      for (const auto& ranks : groups_.pp) {
        joined.push_back(group_of(ranks).front());
        join(group_of(ranks));
      }
      merge_data(joined);
      merged_.graphs.push_back(joined.front());
    } else {
      std::set<std::int64_t> joined;
      for (const auto& ranks : groups_.pp) {
        gather_free_apis(group_of(ranks));
        join(group_of(ranks));
        joined.insert(ranks.front());
      }
      for (const auto& ranks : groups_.tp) {
        std::vector<std::int64_t> present = ranks;
        std::erase_if(present, [&](std::int64_t rank) { return !joined.contains(rank); });
        if (!present.empty()) merge_shards(group_of(present));
      }
    }
  }

 private:
  MergeGroup group_of(const std::vector<std::int64_t>& ranks) const {
    MergeGroup group;
    for (const std::int64_t rank : ranks) group.push_back(graphs_.at(rank));
    return group;
  }
  void merge_shards(const MergeGroup& group) {
    gather_free_apis(group);
    merge_data(group);
    merged_.graphs.push_back(group.front());
  }
  void merge_data(const MergeGroup& group) {
    for (std::string& warning : merge_tensor_parallel(group, groups_.tp))
      merged_.replicas.push_back(std::move(warning));
  }
  void join(const MergeGroup& group) const {
    join_stages(group);
    if (plan_.vpp > 1) join_chunks(*group.front(), plan_.vpp);
  }

  MergedRanks& merged_;
  const ParallelPlan& plan_;
  const ParallelGroups& groups_;
  std::map<std::int64_t, std::shared_ptr<MergeGraph>> graphs_;
};

}  // namespace

std::unique_ptr<MergedRanks> read_ranks(const std::string& folder, Progress* progress) {
  std::map<std::int64_t, std::string> folders;
  for (const std::string& name : names_in(folder)) {
    const auto number = name == "rank" ? 0 : dump::number_after(name, "rank");
    if (!number) {
      throw UsageError(display(folder) + ": " + display(name) + " is not a rank folder",
                       "a folder of ranks to merge must contain only rank0, rank1, ...");
    }
    if (!folders.emplace(*number, name).second)
      throw UsageError(display(folder) + ": two folders for rank " + std::to_string(*number));
  }
  if (folders.empty()) throw UsageError(display(folder) + ": it has no ranks");
  auto merged = std::make_unique<MergedRanks>();
  for (const auto& [number, name] : folders) {
    merged->ranks.emplace_back().number = number;
  }
  std::vector<std::string> names;
  for (const auto& [number, name] : folders) names.push_back(name);
  if (progress != nullptr) progress->begin("read: " + display(folder), names.size(), "ranks");
  parallel_for(names.size(), [&](std::size_t i) {
    merged->ranks[i].graph = read_rank_graph(folder + "/" + names[i]);
    if (progress != nullptr) progress->advance();
  });
  return merged;
}

void merge_ranks(MergedRanks& merged, const ParallelPlan& plan, const std::string& side) {
  check_plan(plan, merged.ranks.size(), side);
  ParallelGroups groups = find_groups(plan, merged.ranks);
  for (std::string& warning : groups.warnings) merged.warnings.push_back(side + std::move(warning));
  Strategy(merged, plan, groups).merge();
}

}  // namespace msprobe::graph
