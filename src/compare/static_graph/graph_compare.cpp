// SPDX-License-Identifier: Apache-2.0
#include "compare/static_graph/graph_compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "compare/metrics/tensor_metrics.hpp"
#include "compare/static_graph/graph_rows.hpp"
#include "support/error.hpp"
#include "support/log.hpp"
#include "support/parallel.hpp"
#include "support/progress.hpp"
#include "support/text.hpp"

namespace msprobe::compare {
namespace {

constexpr std::uint32_t kNone = UINT32_MAX;

/// Indices of the items by key, those of one key in the order of their times.
class ByKey {
 public:
  explicit ByKey(const std::vector<GraphItem>& items) : order_(items.size()) {
    std::unordered_map<std::string_view, std::vector<std::uint32_t>> groups;
    for (std::uint32_t i = 0; i < items.size(); ++i) groups[items[i].key].push_back(i);
    for (auto& [key, group] : groups) {
      std::stable_sort(group.begin(), group.end(), [&](std::uint32_t a, std::uint32_t b) {
        const std::string& left = items[a].time;
        const std::string& right = items[b].time;
        return left.size() != right.size() ? left.size() < right.size() : left < right;
      });
      for (std::uint32_t i = 0; i < group.size(); ++i) order_[group[i]] = i;
    }
    groups_ = std::move(groups);
  }

  /// How many of its key come before this item.
  std::uint32_t order(std::uint32_t item) const { return order_[item]; }
  std::uint32_t find(std::string_view key, std::uint32_t order) const {
    const auto group = groups_.find(key);
    return group == groups_.end() || order >= group->second.size() ? kNone : group->second[order];
  }

 private:
  std::vector<std::uint32_t> order_;
  std::unordered_map<std::string_view, std::vector<std::uint32_t>> groups_;
};

struct ItemPair {
  const GraphItem* target = nullptr;
  const GraphItem* golden = nullptr;
};

std::vector<ItemPair> join(const GraphSide& target, const GraphSide& golden) {
  const ByKey targets(target.items);
  const ByKey goldens(golden.items);
  std::vector<ItemPair> pairs;
  std::vector<bool> used(golden.items.size(), false);
  for (std::uint32_t i = 0; i < target.items.size(); ++i) {
    const std::uint32_t other = goldens.find(target.items[i].key, targets.order(i));
    pairs.push_back({&target.items[i], other == kNone ? nullptr : &golden.items[other]});
    if (other != kNone) used[other] = true;
  }
  for (std::uint32_t i = 0; i < golden.items.size(); ++i) {
    if (!used[i]) pairs.push_back({nullptr, &golden.items[i]});
  }
  return pairs;
}

std::string place_text(const GraphPlace& place) {
  return fmt::format("rank {} step {}", place.first, place.second);
}

void tell_gaps(const GraphSide& side, const std::vector<std::string>& folders) {
  for (const std::string& gap : side.gaps) log_warning(gap);
  if (side.unnamed > 0) {
    log_warning(fmt::format("{}: {} .npy files left out: their names are not those of dumped tensors",
                            display(folders.front()), human_count(side.unnamed)));
  }
}

}  // namespace

GraphPlan plan_graphs(const FoundGraphs& target, const FoundGraphs& golden, const GraphSelection& selection) {
  GraphFolders targets = chosen_folders(target.search, selection);
  GraphFolders goldens = chosen_folders(golden.search, selection);
  GraphPlan plan;
  for (auto& [place, folders] : targets) {
    const auto other = goldens.find(place);
    if (other == goldens.end()) {
      plan.one_sided.push_back(place_text(place) + ": only in the target");
    } else {
      plan.pairs.push_back({place, std::move(folders), std::move(other->second)});
    }
  }
  for (const auto& [place, folders] : goldens) {
    if (!targets.contains(place)) plan.one_sided.push_back(place_text(place) + ": only in the golden side");
  }
  if (plan.pairs.empty()) {
    throw FormatError("the two static-graph dumps have no rank and step in common" +
                      std::string(selection.ranks.empty() && selection.steps.empty()
                                      ? ": "
                                      : " that --rank and --step name: ") +
                      display(target.path) + ", " + display(golden.path));
  }
  return plan;
}

GraphResult compare_graphs(const GraphPair& pair, const GraphTraits& traits, const MeasureTraits& measure,
                           Progress* progress) {
  GraphSide target;
  GraphSide golden;
  parallel_for(2, [&](std::size_t side) {
    if (side == 0) target = read_graph_side(pair.target);
    if (side == 1) golden = read_graph_side(pair.golden);
  });
  tell_gaps(target, pair.target);
  tell_gaps(golden, pair.golden);
  if (target.mode != golden.mode) {
    const bool tensors = target.mode == GraphMode::tensors;
    throw FormatError(fmt::format("only {} has .npy files, {} has statistic.csv: there is nothing to compare",
                                  display(tensors ? pair.target.front() : pair.golden.front()),
                                  display(tensors ? pair.golden.front() : pair.target.front())));
  }
  GraphResult result;
  result.mode = target.mode;
  result.list.columns = graph_columns(result.mode);
  const std::vector<ItemPair> pairs = join(target, golden);
  result.list.rows.resize(pairs.size());
  if (progress != nullptr && result.mode == GraphMode::tensors) {
    progress->begin("comparing tensors", pairs.size(), "rows");
  }
  parallel_for(pairs.size(), [&](std::size_t i) {
    result.list.rows[i] = result.mode == GraphMode::tensors
                              ? tensor_row(pairs[i].target, pairs[i].golden, traits, measure)
                              : statistics_row(pairs[i].target, pairs[i].golden, traits);
    if (progress != nullptr && result.mode == GraphMode::tensors) progress->advance();
  });
  return result;
}

}  // namespace msprobe::compare
