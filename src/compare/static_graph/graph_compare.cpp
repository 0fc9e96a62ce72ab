// SPDX-License-Identifier: Apache-2.0
#include "compare/static_graph/graph_compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "compare/static_graph/graph_rows.hpp"
#include "support/error.hpp"
#include "support/log.hpp"
#include "support/parallel.hpp"
#include "support/text.hpp"

namespace msprobe::compare {
namespace {

constexpr std::uint32_t kNoPartner = UINT32_MAX;

/// Indices of the items by key; items with one key are in the order of their times.
class ByKey {
 public:
  explicit ByKey(const std::vector<GraphItem>& items) : order_(items.size()) {
    std::unordered_map<std::string_view, std::vector<std::uint32_t>> groups;
    for (std::uint32_t i = 0; i < items.size(); ++i) groups[items[i].key].push_back(i);
    for (auto& [key, group] : groups) {
      std::ranges::stable_sort(group, [&](std::uint32_t a, std::uint32_t b) {
        const std::string& left = items[a].time;
        const std::string& right = items[b].time;
        return left.size() != right.size() ? left.size() < right.size() : left < right;
      });
      for (std::uint32_t i = 0; i < group.size(); ++i) order_[group[i]] = i;
    }
    groups_ = std::move(groups);
  }

  /// How many items with its key come before this item.
  std::uint32_t order(std::uint32_t item) const { return order_[item]; }
  std::uint32_t find(std::string_view key, std::uint32_t order) const {
    const auto group = groups_.find(key);
    return group == groups_.end() || order >= group->second.size() ? kNoPartner : group->second[order];
  }

 private:
  std::vector<std::uint32_t> order_;
  std::unordered_map<std::string_view, std::vector<std::uint32_t>> groups_;
};

struct ItemPair {
  const GraphItem* target = nullptr;
  const GraphItem* golden = nullptr;
};

std::vector<ItemPair> join(const StaticGraphSide& target, const StaticGraphSide& golden) {
  const ByKey targets(target.items);
  const ByKey goldens(golden.items);
  std::vector<ItemPair> pairs;
  std::vector<bool> used(golden.items.size(), false);
  for (std::uint32_t i = 0; i < target.items.size(); ++i) {
    const std::uint32_t other = goldens.find(target.items[i].key, targets.order(i));
    pairs.push_back({&target.items[i], other == kNoPartner ? nullptr : &golden.items[other]});
    if (other != kNoPartner) used[other] = true;
  }
  for (std::uint32_t i = 0; i < golden.items.size(); ++i) {
    if (!used[i]) pairs.push_back({nullptr, &golden.items[i]});
  }
  return pairs;
}

void report_gaps(const StaticGraphSide& side, const std::vector<std::string>& folders) {
  for (const std::string& gap : side.gaps) log_warning(gap);
  if (side.unnamed > 0) {
    log_warning(fmt::format("{}: {} .npy files left out: their names are not those of dumped tensors",
                            display(folders.front()), human_count(side.unnamed)));
  }
}

/// The chosen folders that have data.
dump::GraphFolders chosen_folders(const dump::GraphSearch& search, const GraphSelection& selection) {
  search.check();
  dump::GraphFolders folders = search.folders;
  std::erase_if(folders, [&](const auto& found) {
    const auto [rank, step] = found.first;
    return !selection.ranks.contains(rank) || !selection.steps.contains(step);
  });
  return folders;
}

std::shared_ptr<const Rows> compare_graphs(const std::vector<std::string>& target_folders,
                                           const std::vector<std::string>& golden_folders,
                                           Progress* progress) {
  StaticGraphSide target;
  StaticGraphSide golden;
  parallel_for(2, [&](std::size_t side) {
    if (side == 0) target = read_graph_side(target_folders);
    if (side == 1) golden = read_graph_side(golden_folders);
  });
  report_gaps(target, target_folders);
  report_gaps(golden, golden_folders);
  const bool tensors = target.mode == measuring::Mode::tensor;
  if (target.mode != golden.mode) {
    throw FormatError(fmt::format("only {} has .npy files, {} has statistic.csv: there is nothing to compare",
                                  display((tensors ? target_folders : golden_folders).front()),
                                  display((tensors ? golden_folders : target_folders).front())));
  }
  const std::vector<ItemPair> pairs = join(target, golden);
  RowList list{graph_columns(target.mode), {}};
  list.fill(pairs.size(), tensors ? progress : nullptr, "comparing tensors", "rows", [&](std::size_t i) {
    const auto [here, there] = pairs[i];
    return tensors ? tensor_row(here, there) : statistics_row(here, there);
  });
  return std::make_shared<ListRows>(target.mode, std::move(list));
}

}  // namespace

TaskPlan plan_static_graphs(const FoundGraphs& target, const FoundGraphs& golden,
                            const GraphSelection& selection, Progress* progress) {
  const dump::GraphFolders targets = chosen_folders(target.search, selection);
  const dump::GraphFolders goldens = chosen_folders(golden.search, selection);
  TaskPlan plan;
  plan.one_at_a_time = true;
  for (const auto& [place, folders] : targets) {
    const std::string label = fmt::format("rank {} step {}", place.first, place.second);
    const auto other = goldens.find(place);
    if (other == goldens.end()) {
      plan.one_sided.push_back(label + ": only in target");
      continue;
    }
    CompareTask& task = plan.tasks.emplace_back();
    task.label = label;
    task.suffix = fmt::format("_{}_{}", place.first, place.second);
    task.target = folders.front();
    task.golden = other->second.front();
    task.run = [here = folders, there = other->second, progress] {
      return compare_graphs(here, there, progress);
    };
  }
  for (const auto& [place, folders] : goldens) {
    if (!targets.contains(place))
      plan.one_sided.push_back(fmt::format("rank {} step {}: only in golden", place.first, place.second));
  }
  if (plan.tasks.empty()) {
    throw FormatError("the two static-graph dumps have no rank and step in common" +
                      std::string(selection.ranks.empty() && selection.steps.empty()
                                      ? ": "
                                      : " that --rank and --step name: ") +
                      display(target.path) + ", " + display(golden.path));
  }
  return plan;
}

}  // namespace msprobe::compare
