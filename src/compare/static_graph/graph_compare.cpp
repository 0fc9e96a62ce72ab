// SPDX-License-Identifier: Apache-2.0
#include "compare/static_graph/graph_compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "compare/static_graph/graph_rows.hpp"
#include "support/error.hpp"
#include "support/log.hpp"
#include "support/parallel.hpp"
#include "support/text.hpp"

namespace msprobe::compare {
namespace {

/// The key of an item, and how many items of that key have an earlier time.
using ItemPlace = std::pair<std::string_view, std::uint32_t>;

std::vector<ItemPlace> places_of(const std::vector<GraphItem>& items) {
  std::vector<std::uint32_t> order(items.size());
  std::iota(order.begin(), order.end(), 0);
  const auto by_time = [&](std::uint32_t i) {
    return std::tuple<std::string_view, std::size_t, std::string_view>(items[i].key, items[i].time.size(),
                                                                       items[i].time);
  };
  std::ranges::stable_sort(order, {}, by_time);
  std::vector<ItemPlace> places(items.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::string_view key = items[order[i]].key;
    const bool again = i > 0 && places[order[i - 1]].first == key;
    places[order[i]] = {key, again ? places[order[i - 1]].second + 1 : 0};
  }
  return places;
}

struct ItemPair {
  const GraphItem* target = nullptr;
  const GraphItem* golden = nullptr;
};

std::vector<ItemPair> join(const StaticGraphSide& target, const StaticGraphSide& golden) {
  const std::vector<ItemPlace> goldens = places_of(golden.items);
  std::map<ItemPlace, const GraphItem*> left;
  for (std::size_t i = 0; i < goldens.size(); ++i) left.emplace(goldens[i], &golden.items[i]);
  std::vector<ItemPair> pairs;
  const std::vector<ItemPlace> targets = places_of(target.items);
  for (std::size_t i = 0; i < targets.size(); ++i) {
    const auto other = left.find(targets[i]);
    pairs.push_back({&target.items[i], other == left.end() ? nullptr : other->second});
    if (other != left.end()) left.erase(other);
  }
  for (std::size_t i = 0; i < goldens.size(); ++i) {
    if (left.contains(goldens[i])) pairs.push_back({nullptr, &golden.items[i]});
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
