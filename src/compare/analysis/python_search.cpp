// SPDX-License-Identifier: Apache-2.0
// The Python tool's search, mistakes included (docs/rules.md, "The first difference"). It resembles the one
// of nan_analyze but is not the same: partners are guessed from rows instead of arguments, APIs match by the
// beginnings of their names, every round looks at all groups, and layers move on. Only what belongs together
// in truth is shared (dump/communication_graph.hpp).
#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "compare/analysis/search.hpp"

namespace msprobe::compare {
namespace {

bool is_directed(std::string_view operation) {
  static const std::set<std::string, std::less<>> kDirected = {"send",
                                                               "recv",
                                                               "isend",
                                                               "irecv",
                                                               "broadcast",
                                                               "scatter",
                                                               "gather",
                                                               "send_object_list",
                                                               "recv_object_list"};
  return kDirected.contains(operation);
}

Role opposite(Role role) {
  if (role == Role::link) return role;
  return role == Role::source ? Role::destination : Role::source;
}

struct SearchNode {
  std::size_t rank = 0;
  const CommNode* comm = nullptr;
  const std::optional<FoundEntry>* compute = nullptr;  // the first differing entry ahead of it
  std::uint32_t layer = 0;
  std::vector<std::size_t> edges;

  bool pruned() const { return !comm->differs() && !*compute; }
  bool names_nobody() const { return comm->partners.empty() && (!comm->group || comm->group->empty()); }
  bool names(std::int64_t number) const {
    return std::binary_search(comm->partners.begin(), comm->partners.end(), number) ||
           (comm->group && std::binary_search(comm->group->begin(), comm->group->end(), number));
  }
};

class PythonSearch {
 public:
  explicit PythonSearch(const std::vector<RankDifferences>& ranks) : ranks_(ranks) {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      first_.push_back(nodes_.size());
      indexes_.emplace(ranks_[r].number, r);
      for (std::size_t i = 0; i < ranks_[r].comms.size(); ++i) {
        SearchNode& node = nodes_.emplace_back();
        node.rank = r;
        node.comm = &ranks_[r].comms[i];
        node.compute = &ranks_[r].first_in[i];
        node.layer = static_cast<std::uint32_t>(i);
      }
    }
    first_.push_back(nodes_.size());
    taken_by_.assign(nodes_.size(), SIZE_MAX);
  }

  FirstDifference run() {
    connect();
    return search();
  }

 private:
  /// The nodes of another rank that a kind of call of one rank may take, in order.
  struct Offers {
    std::vector<std::size_t> nodes;
    std::size_t next = 0;
  };
  using TransferKey = std::tuple<std::size_t, std::string, Role>;  // other rank, beginning of the name, role

  void connect() {
    for (std::size_t r = 0; r + 1 < ranks_.size(); ++r) {
      std::map<TransferKey, Offers> offers;
      for (std::size_t n = first_[r]; n < first_[r + 1]; ++n) {
        SearchNode& node = nodes_[n];
        if (n > first_[r] && nodes_[n - 1].layer >= node.layer) node.layer = nodes_[n - 1].layer + 1;
        const std::string prefix = "Distributed." + dump::partner_operation(node.comm->operation);
        for (const std::size_t other : later_partners(node))
          take_first(n, offers, {other, prefix, opposite(node.comm->role)});
      }
    }
  }

  std::set<std::size_t> later_partners(const SearchNode& node) const {
    std::set<std::size_t> others;
    if (node.names_nobody()) {
      for (std::size_t other = node.rank + 1; other < ranks_.size(); ++other) others.insert(other);
      return others;
    }
    const auto add = [&](std::int64_t number) {
      const auto found = indexes_.find(number);
      if (found != indexes_.end() && found->second > node.rank) others.insert(found->second);
    };
    for (const std::int64_t number : node.comm->partners) add(number);
    if (node.comm->group && node.comm->group->size() <= ranks_.size()) {
      for (const std::int64_t number : *node.comm->group) add(number);
    } else if (node.comm->group) {
      for (std::size_t other = node.rank + 1; other < ranks_.size(); ++other) {
        if (std::binary_search(node.comm->group->begin(), node.comm->group->end(), ranks_[other].number))
          others.insert(other);
      }
    }
    return others;
  }

  void take_first(std::size_t n, std::map<TransferKey, Offers>& offers, const TransferKey& key) {
    const std::size_t own = nodes_[n].rank;
    const auto [place, inserted] = offers.try_emplace(key);
    Offers& offer = place->second;
    if (inserted) {
      const auto& [other, prefix, role] = key;
      for (std::size_t m = first_[other]; m < first_[other + 1]; ++m) {
        const SearchNode& candidate = nodes_[m];
        if (!candidate.comm->name.starts_with(prefix) || candidate.comm->role != role) continue;
        const bool any = candidate.names_nobody() && !is_directed(candidate.comm->operation);
        if (any || candidate.names(ranks_[own].number)) offer.nodes.push_back(m);
      }
    }
    while (offer.next < offer.nodes.size() && taken_by_[offer.nodes[offer.next]] == own) ++offer.next;
    if (offer.next == offer.nodes.size()) return;
    const std::size_t m = offer.nodes[offer.next++];
    taken_by_[m] = own;
    nodes_[m].layer = nodes_[n].layer;
    nodes_[n].edges.push_back(m);
    nodes_[m].edges.push_back(n);
  }

  /// All that can be reached from a node over nodes that were not pruned.
  std::vector<std::size_t> members(std::size_t start, std::vector<std::size_t>& mark) const {
    std::vector<std::size_t> found{start};
    mark[start] = start;
    for (std::size_t i = 0; i < found.size(); ++i) {
      for (const std::size_t other : nodes_[found[i]].edges) {
        if (nodes_[other].pruned() || mark[other] == start) continue;
        mark[other] = start;
        found.push_back(other);
      }
    }
    return found;
  }

  FirstDifference search() const {
    std::vector<std::vector<std::size_t>> queues(ranks_.size());
    std::vector<std::size_t> heads(ranks_.size(), 0);
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      if (!nodes_[n].pruned()) queues[nodes_[n].rank].push_back(n);
    }
    for (auto& queue : queues) {
      std::ranges::stable_sort(
          queue, [&](std::size_t a, std::size_t b) { return nodes_[a].layer < nodes_[b].layer; });
    }
    std::vector<bool> seen(nodes_.size(), false);
    std::vector<std::size_t> mark(nodes_.size(), SIZE_MAX);
    FirstDifference result;
    for (bool any = true; any && result.places.empty();) {
      any = false;
      std::set<std::size_t> grouped;
      for (std::size_t r = 0; r < queues.size(); ++r) {
        while (heads[r] < queues[r].size() && seen[queues[r][heads[r]]]) ++heads[r];
        if (heads[r] == queues[r].size()) continue;
        any = true;
        const std::size_t n = queues[r][heads[r]++];
        if (grouped.contains(n)) continue;
        const std::vector<std::size_t> group = members(n, mark);
        grouped.insert(group.begin(), group.end());
      }
      for (const std::size_t n : grouped) seen[n] = true;
      result = earliest(grouped);
    }
    return result;
  }

  FirstDifference earliest(const std::set<std::size_t>& group) const {
    FirstDifference result;
    std::pair<std::uint32_t, std::uint32_t> least{UINT32_MAX, UINT32_MAX};
    const auto offer = [&](const SearchNode& node, std::uint32_t sub_layer, const FoundEntry& entry,
                           bool comm) {
      const std::pair key{node.layer, sub_layer};
      if (key > least) return;
      if (key < least) result.places.clear();
      least = key;
      result.places.push_back({node.rank, &entry, comm});
      result.phase = Phase::during;
    };
    for (const std::size_t n : group) {
      const SearchNode& node = nodes_[n];
      if (*node.compute) offer(node, (*node.compute)->sub_layer, **node.compute, false);
      if (node.comm->found) offer(node, node.comm->sub_layer, *node.comm->found, true);
    }
    return result;
  }

  const std::vector<RankDifferences>& ranks_;
  std::vector<SearchNode> nodes_;
  std::vector<std::size_t> first_;  // of each rank in nodes_
  std::map<std::int64_t, std::size_t> indexes_;
  std::vector<std::size_t> taken_by_;  // the last rank that took the node as a partner
};

}  // namespace

FirstDifference search_as_python(const std::vector<RankDifferences>& ranks) {
  FirstDifference result = outside_communication(ranks, Phase::before);
  if (result.phase == Phase::none) result = PythonSearch(ranks).run();
  if (result.phase == Phase::none) result = outside_communication(ranks, Phase::after);
  return result;
}

}  // namespace msprobe::compare
