// SPDX-License-Identifier: Apache-2.0
// Merges the collections of operations between modules: those of all ranks go into one common collection.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "graph/merge/merge_steps.hpp"

namespace msprobe::graph {
namespace {

constexpr std::string_view kAllRanks = "Apis_Between_Modules_All_Ranks";

/// The part after the prefix and a dot; empty if the name does not begin with both or nothing follows.
std::string_view number_after(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix) || name.size() < prefix.size() + 2 || name[prefix.size()] != '.') return {};
  return name.substr(prefix.size() + 1);
}

class FreeApiGatherer {
 public:
  explicit FreeApiGatherer(const MergeGroup& group) : main_(*group.front()), group_(group) {}

  void gather() {
    int all_ranks = 0;
    const std::vector<NodeIndex> tops = std::exchange(main_.node(kRoot).children, {});
    for (const NodeIndex top : tops) {
      const std::string name = main_.node(top).name;
      const bool gathered_before = !number_after(name, kAllRanks).empty();
      if (!gathered_before && number_after(name, model_tree::kCollectionName).empty()) {
        main_.attach(top, kRoot);
        continue;
      }
      taken_.insert(name);
      const NodeIndex gathered =
          gathered_before ? top : add_collection(fmt::format("{}.{}", kAllRanks, all_ranks), top);
      ++all_ranks;
      main_.attach(gathered, kRoot);
      if (!gathered_before) take_own(top, gathered, name);
      for (std::size_t i = 1; i < group_.size(); ++i) {
        const NodeIndex other = group_[i]->find(name);
        if (other != kNoNode && group_[i]->node(other).parent == kRoot) take(*group_[i], other, gathered);
      }
      if (gathered_before) sort_by_rank(gathered);
    }
    take_rest(all_ranks);
  }

 private:
  NodeIndex add_collection(std::string name, NodeIndex like) {
    const NodeIndex added = main_.add(std::move(name), NodeType::collection, {&main_.main_rank(), 0});
    main_.node(added).micro_step = main_.node(like).micro_step;
    return added;
  }

  static std::string name_of_rank(std::string_view name, std::int64_t rank) {
    return fmt::format("{}_Rank{}.{}", model_tree::kCollectionName, rank,
                       number_after(name, model_tree::kCollectionName));
  }

  void take_own(NodeIndex top, NodeIndex gathered, std::string_view name) {
    main_.rename(top, name_of_rank(name, main_.rank()));
    main_.attach(top, gathered);
  }

  /// Takes the other graph's collection, or the collections of ranks that it gathered before.
  void take(const MergeGraph& other, NodeIndex index, NodeIndex gathered) {
    const MergeNode& node = other.node(index);
    if (!number_after(node.name, kAllRanks).empty()) {
      for (const NodeIndex child : node.children) take_copy(other, child, other.node(child).name, gathered);
    } else {
      take_copy(other, index, name_of_rank(node.name, other.rank()), gathered);
    }
  }

  void take_copy(const MergeGraph& other, NodeIndex index, std::string name, NodeIndex gathered) {
    const NodeIndex copy = main_.copy(other, index);
    main_.rename(copy, std::move(name));
    main_.attach(copy, gathered);
    main_.name_apis_by_rank(copy);
  }

  /// Sorts by the number after `_Rank`.
  void sort_by_rank(NodeIndex gathered) {
    const auto rank_of = [&](NodeIndex index) {
      const std::string_view name = main_.node(index).name;
      std::int64_t rank = -1;
      if (const std::size_t at = name.find("_Rank"); at != std::string_view::npos)
        std::from_chars(name.data() + at + 5, name.data() + name.size(), rank);
      return rank;
    };
    auto& children = main_.node(gathered).children;
    std::ranges::stable_sort(children, [&](NodeIndex a, NodeIndex b) { return rank_of(a) < rank_of(b); });
  }

  /// Gathers collections whose names the first rank does not have, and puts them where their own rank has
  /// them.
  void take_rest(int all_ranks) {
    for (std::size_t i = 1; i < group_.size(); ++i) {
      const MergeGraph& other = *group_[i];
      NodeIndex behind = kNoNode;
      for (const NodeIndex top : other.node(kRoot).children) {
        const MergeNode& node = other.node(top);
        if (const NodeIndex here = main_.find(node.name); here != kNoNode && main_.node(here).parent == kRoot)
          behind = here;
        if (node.type != NodeType::collection || taken_.contains(node.name)) continue;
        NodeIndex& gathered = gathered_[node.name];
        if (gathered == kNoNode) {
          gathered = add_collection(fmt::format("{}.{}", kAllRanks, all_ranks++), kRoot);
          main_.node(gathered).micro_step = node.micro_step;
          place_behind(gathered, behind);
        }
        take(other, top, gathered);
        behind = gathered;
      }
    }
  }

  void place_behind(NodeIndex index, NodeIndex before) {
    auto& tops = main_.node(kRoot).children;
    const auto at = std::find(tops.begin(), tops.end(), before);
    main_.node(index).parent = kRoot;
    tops.insert(at == tops.end() ? at : at + 1, index);
  }

  MergeGraph& main_;
  const MergeGroup& group_;
  std::unordered_set<std::string> taken_;
  std::unordered_map<std::string, NodeIndex> gathered_;
};

}  // namespace

void gather_free_apis(const MergeGroup& group) {
  FreeApiGatherer(group).gather();
}

}  // namespace msprobe::graph
