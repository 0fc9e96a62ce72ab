// SPDX-License-Identifier: Apache-2.0
#include "graph/merge/parallel_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "dump/communication.hpp"
#include "dump/names.hpp"
#include "graph/merge/node_content.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::graph {
namespace {

using dump::Entry;
using dump::NodeKind;

struct Dimension {
  std::string name;
  std::size_t size = 1;
};

/// The dimensions in the order of the plan, the fastest first. Dimensions of size 1 that the order omits come
/// last.
std::vector<Dimension> dimensions_of(const ParallelPlan& plan, const std::string& side) {
  const auto product = static_cast<std::int64_t>(plan.tp) * plan.pp;
  std::map<std::string, std::size_t, std::less<>> sizes = {
      {"tp", static_cast<std::size_t>(plan.tp)},
      {"cp", 1},
      {"ep", 1},
      {"dp", static_cast<std::size_t>(plan.rank_size / product)},
      {"pp", static_cast<std::size_t>(plan.pp)}};
  std::vector<Dimension> dimensions;
  for (const std::string_view name : split(plan.order, "-")) {
    const auto found = sizes.find(name);
    if (found == sizes.end()) {
      throw UsageError(fmt::format("{}--order: {} must be one of tp, cp, ep, dp and pp, and only once", side,
                                   display(name)));
    }
    dimensions.push_back({found->first, found->second});
    sizes.erase(found);
  }
  for (const auto& [name, size] : sizes) {
    if (size != 1)
      throw UsageError(
          fmt::format("{}--order: {} is {}, but {} does not name it", side, name, size, display(plan.order)));
  }
  return dimensions;
}

RankGroups default_groups(const ParallelPlan& plan, const std::vector<MergeRank>& ranks,
                          std::string_view along) {
  std::size_t stride = 1;
  std::size_t size = 1;
  for (const Dimension& dimension : dimensions_of(plan, {})) {
    if (dimension.name == along) {
      size = dimension.size;
      break;
    }
    stride *= dimension.size;
  }
  RankGroups groups;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    if (rank / stride % size != 0) continue;
    auto& group = groups.emplace_back();
    for (std::size_t i = 0; i < size; ++i) group.push_back(ranks[rank + i * stride].number);
  }
  return groups;
}

dump::CommCall call_of(const Entry& entry) {
  dump::RankListPool pool;
  return dump::read_comm_call(entry, pool);
}

class GroupFinder {
 public:
  explicit GroupFinder(const std::vector<MergeRank>& ranks) : ranks_(ranks) {}

  RankGroups tensor_parallel() const {
    RankGroups groups;
    for (const MergeRank& rank : ranks_) {
      const model_tree::ModelTree& tree = rank.graph.built.tree;
      for (NodeIndex index = kRoot + 1; index < tree.size(); ++index) {
        const std::string_view name = tree.name(index);
        if (!is_reduction(name)) continue;
        Entry entry;
        if (!read(rank, name, entry)) break;
        std::vector<std::int64_t> list = ranks_of_call(entry);
        if (!list.empty() && std::find(groups.begin(), groups.end(), list) == groups.end())
          groups.push_back(std::move(list));
        break;
      }
    }
    return groups;
  }

  /// Chains from a rank to whom it sends first.
  RankGroups pipeline() const {
    std::map<std::int64_t, std::int64_t> next;
    for (const MergeRank& rank : ranks_) {
      if (const auto target = first_target(rank)) next[rank.number] = *target;
    }
    std::set<std::int64_t> visited;
    RankGroups groups;
    for (const MergeRank& rank : ranks_) {
      std::vector<std::int64_t> group;
      std::int64_t at = rank.number;
      while (next.contains(at) && visited.insert(at).second) {
        group.push_back(at);
        at = next.at(at);
      }
      if (group.empty()) continue;
      const bool is_rank =
          std::ranges::any_of(ranks_, [&](const MergeRank& each) { return each.number == at; });
      if (is_rank && visited.insert(at).second) group.push_back(at);
      groups.push_back(std::move(group));
    }
    return groups;
  }

 private:
  static bool read(const MergeRank& rank, std::string_view name, Entry& entry) {
    const std::uint32_t number = rank.graph.entries.find(name);
    return number != TextIndex::kNone && read_place({&rank, number}, entry) > 0 &&
           entry.is(0, NodeKind::object);
  }

  static std::optional<std::int64_t> first_target(const MergeRank& rank) {
    const model_tree::ModelTree& tree = rank.graph.built.tree;
    for (NodeIndex index = kRoot + 1; index < tree.size(); ++index) {
      const std::string_view name = tree.name(index);
      const bool batch = name.starts_with("Distributed.batch_isend_irecv.");
      if (!batch && !name.starts_with("Distributed.send.") && !name.starts_with("Distributed.isend."))
        continue;
      Entry entry;
      if (!read(rank, name, entry)) continue;
      const dump::CommCall call = call_of(entry);
      if (!batch && call.keywords[dump::kDst]) return call.keywords[dump::kDst];
      const auto transfer = std::ranges::find_if(
          call.transfers, [&](const dump::Transfer& each) { return each.sends && each.peer != rank.number; });
      if (batch && transfer != call.transfers.end()) return transfer->peer;
    }
    return std::nullopt;
  }

  const std::vector<MergeRank>& ranks_;
};

/// Is every rank in one of the groups, and in no other, and are these all of that size?
bool is_partition(const RankGroups& groups, std::size_t size, const std::vector<MergeRank>& ranks) {
  std::set<std::int64_t> seen;
  for (const auto& group : groups) {
    if (group.size() != size) return false;
    for (const std::int64_t rank : group) {
      if (!seen.insert(rank).second) return false;
    }
  }
  return seen.size() == ranks.size() &&
         std::ranges::all_of(ranks, [&](const MergeRank& rank) { return seen.contains(rank.number); });
}

RankGroups checked(RankGroups found, const ParallelPlan& plan, int size, const std::vector<MergeRank>& ranks,
                   std::string_view dimension, std::string_view operations,
                   std::vector<std::string>& warnings) {
  if (!found.empty() && is_partition(found, static_cast<std::size_t>(size), ranks)) return found;
  if (!found.empty()) {
    std::vector<std::string> texts;
    for (const auto& group : found) texts.push_back(fmt::format("[{}]", fmt::join(group, ", ")));
    constexpr std::size_t kShown = 8;
    const bool more = texts.size() > kShown;
    if (more) texts.resize(kShown);
    warnings.push_back(
        fmt::format("{} in the dump show the {} groups [{}{}], which do not fit --{} {}; using "
                    "--rank_size, "
                    "--tp, --pp and --order",
                    operations, dimension, fmt::join(texts, ", "), more ? ", ..." : "", dimension, size));
  }
  return default_groups(plan, ranks, dimension);
}

}  // namespace

bool is_reduction(std::string_view name) {
  return name.find("reduce_scatter") != std::string_view::npos ||
         name.find("all_reduce") != std::string_view::npos;
}

std::vector<std::int64_t> ranks_of_call(const Entry& entry) {
  const dump::CommCall call = call_of(entry);
  return call.named_group ? *call.group_ranks : std::vector<std::int64_t>();
}

void check_plan(const ParallelPlan& plan, std::size_t ranks, const std::string& side) {
  const auto refuse = [&](const std::string& text) { throw UsageError(side + text); };
  if (plan.rank_size < 1 || static_cast<std::size_t>(plan.rank_size) != ranks)
    refuse(fmt::format("--rank_size is {}, but there are {} ranks", plan.rank_size, ranks));
  for (const auto& [name, value] :
       {std::pair<const char*, int>("tp", plan.tp), {"pp", plan.pp}, {"vpp", plan.vpp}}) {
    if (value <= 0) refuse(fmt::format("--{} is {}: it must be greater than 0", name, value));
  }
  for (const auto& [name, value] : {std::pair<const char*, int>("tp", plan.tp), {"pp", plan.pp}}) {
    if (value > plan.rank_size)
      refuse(fmt::format("--{} {} is more than --rank_size {}", name, value, plan.rank_size));
    if (plan.rank_size % value != 0)
      refuse(fmt::format("--rank_size {} cannot be divided by --{} {}", plan.rank_size, name, value));
  }
  const std::int64_t product = static_cast<std::int64_t>(plan.tp) * plan.pp;
  if (plan.rank_size % product != 0) {
    refuse(fmt::format("--rank_size {} cannot be divided by --tp {} times --pp {}", plan.rank_size, plan.tp,
                       plan.pp));
  }
  if (plan.vpp > 1 && plan.pp <= 1) refuse(fmt::format("--vpp {} needs a --pp greater than 1", plan.vpp));
  dimensions_of(plan, side);
}

ParallelGroups find_groups(const ParallelPlan& plan, const std::vector<MergeRank>& ranks) {
  ParallelGroups groups;
  const GroupFinder finder(ranks);
  if (plan.tp > 1)
    groups.tp = checked(finder.tensor_parallel(), plan, plan.tp, ranks, "tp", "all_reduce and reduce_scatter",
                        groups.warnings);
  if (plan.pp > 1)
    groups.pp = checked(finder.pipeline(), plan, plan.pp, ranks, "pp", "send and isend", groups.warnings);
  return groups;
}

}  // namespace msprobe::graph
