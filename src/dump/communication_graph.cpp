// SPDX-License-Identifier: Apache-2.0
#include "dump/communication_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "support/text.hpp"

namespace msprobe::dump {
namespace {

using NameSet = std::set<std::string, std::less<>>;

bool is_object_transfer(std::string_view operation) {
  return operation.ends_with("_object_list") && (is_send(operation) || is_receive(operation));
}

bool gives_values(const Communication& comm, std::int64_t own, const NameSet& names_source) {
  const std::string& operation = comm.operation;
  if (is_receive(operation)) return false;
  if (is_send(operation) || !names_source.contains(operation)) return true;
  const auto source = named_rank(comm.call, true);
  return !source || *source == own;
}

/// Finds the exchange that a call belongs to: the n-th call of each member with the same key.
class ExchangeMatcher {
 public:
  explicit ExchangeMatcher(std::vector<Exchange>& exchanges) : exchanges_(exchanges) {}

  Exchange& collective(std::int64_t rank, const Communication& comm, int group) {
    return find({comm.operation + (comm.backward ? ".b" : ".f"), group, 0, 0}, rank);
  }
  Exchange& transfer(bool objects, bool sends, std::int64_t from, std::int64_t to, std::int64_t tag) {
    return find({objects ? kObjects : kTensors, from, to, tag}, sends ? 0 : 1);
  }

  /// Describes the first key whose sides have different numbers of calls. It leaves out a key with calls on
  /// one side only.
  std::string uneven() const {
    for (const auto& [key, calls] : calls_) {
      const auto& [kind, group, to, tag] = key;
      const auto count = [&calls = calls](std::int64_t side) {
        const auto found = calls.count.find(side);
        return found == calls.count.end() ? 0 : found->second;
      };
      if (kind == kTensors || kind == kObjects) {
        if (count(0) == count(1) || count(0) == 0 || count(1) == 0) continue;
        return fmt::format("transfers from rank {} to rank {}: {} sent, {} received", group, to, count(0),
                           count(1));
      }
      const auto [least, most] =
          std::minmax_element(calls.count.begin(), calls.count.end(),
                              [](const auto& a, const auto& b) { return a.second < b.second; });
      if (least->second == most->second) continue;
      return fmt::format("calls of {} on one group: {} on rank {}, {} on rank {}",
                         display(kind.substr(0, kind.size() - 2)), most->second, most->first, least->second,
                         least->first);
    }
    return {};
  }

 private:
  static constexpr const char* kTensors = "";
  static constexpr const char* kObjects = "objects";

  /// The kind of an exchange, and its group or its sender, receiver and tag.
  using Key = std::tuple<std::string, std::int64_t, std::int64_t, std::int64_t>;
  struct CallCounts {
    std::map<std::int64_t, std::size_t> count;  // calls so far, by rank or by side
    std::vector<std::size_t> exchanges;
  };

  Exchange& find(const Key& key, std::int64_t side) {
    CallCounts& calls = calls_[key];
    const std::size_t number = calls.count[side]++;
    if (number == calls.exchanges.size()) {
      calls.exchanges.push_back(exchanges_.size());
      exchanges_.emplace_back();
    }
    return exchanges_[calls.exchanges[number]];
  }

  std::vector<Exchange>& exchanges_;
  std::map<Key, CallCounts> calls_;
};

/// Numbers the groups of ranks; the group of all dumped ranks is the same as no group.
class GroupNumbers {
 public:
  explicit GroupNumbers(const std::vector<RankCommunication>& ranks) {
    for (const RankCommunication& rank : ranks) everybody_.push_back(rank.number);
    std::ranges::sort(everybody_);
  }

  int number(const CommCall& call) {
    if (!call.group_ranks) return call.group_id.empty() ? 0 : of(by_id_[call.group_id]);
    const auto known = by_list_.find(call.group_ranks.get());
    if (known != by_list_.end()) return known->second;
    std::vector<std::int64_t> sorted = *call.group_ranks;
    std::ranges::sort(sorted);
    const int number = sorted == everybody_ ? 0 : of(by_ranks_[std::move(sorted)]);
    by_list_[call.group_ranks.get()] = number;
    return number;
  }

 private:
  int of(int& slot) {
    if (slot == 0) slot = ++last_;
    return slot;
  }

  std::vector<std::int64_t> everybody_;
  std::map<std::vector<std::int64_t>, int> by_ranks_;
  std::map<const std::vector<std::int64_t>*, int> by_list_;
  std::map<std::string, int> by_id_;
  int last_ = 0;
};

}  // namespace

CommGraph::CommGraph(const std::vector<RankCommunication>& ranks, const NameSet& names_source) {
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    first_.push_back(nodes_.size());
    for (const Communication* comm : ranks[r].calls) nodes_.push_back({r, comm, 0, 0});
  }
  first_.push_back(nodes_.size());
  match(ranks, names_source);
  find_layers();
}

void CommGraph::match(const std::vector<RankCommunication>& ranks, const NameSet& names_source) {
  ExchangeMatcher matcher(exchanges_);
  GroupNumbers groups(ranks);
  for (std::size_t n = 0; n < nodes_.size(); ++n) {
    const Communication& comm = *nodes_[n].comm;
    const CommCall& call = comm.call;
    const std::int64_t own = ranks[nodes_[n].rank].number;
    if (!call.transfers.empty()) {
      for (const Transfer& transfer : call.transfers) {
        Exchange& exchange = transfer.sends
                                 ? matcher.transfer(false, true, own, transfer.peer, transfer.tag)
                                 : matcher.transfer(false, false, transfer.peer, own, transfer.tag);
        (transfer.sends ? exchange.senders : exchange.receivers).push_back(n);
      }
    } else if (!is_collective(comm)) {
      const bool sends = is_send(comm.operation);
      // The other rank is not known, so that this transfer stays unmatched.
      const auto peer = named_rank(call, !sends);
      if (!peer) continue;
      Exchange& exchange = matcher.transfer(is_object_transfer(comm.operation), sends, sends ? own : *peer,
                                            sends ? *peer : own, call.tag);
      (sends ? exchange.senders : exchange.receivers).push_back(n);
    } else {
      Exchange& exchange = matcher.collective(own, comm, groups.number(call));
      if (gives_values(comm, own, names_source)) exchange.senders.push_back(n);
      exchange.receivers.push_back(n);
    }
  }
  uneven_ = matcher.uneven();
}

void CommGraph::find_layers() {
  // Three kinds of points in time: an entry is called, an exchange has all it needs, an entry is done.
  const std::size_t count = nodes_.size();
  const std::size_t points = 2 * count + exchanges_.size();
  std::vector<std::vector<std::size_t>> gives(count);
  for (std::size_t e = 0; e < exchanges_.size(); ++e) {
    for (const std::size_t n : exchanges_[e].senders) gives[n].push_back(e);
  }
  const auto followers = [&](std::size_t point, auto&& visit) {
    if (point < count) {
      visit(count + point, 0U);
      for (const std::size_t e : gives[point]) visit(2 * count + e, 0U);
    } else if (point < 2 * count) {
      const std::size_t n = point - count;
      if (n + 1 < first_[nodes_[n].rank + 1]) visit(n + 1, 1U);
    } else {
      for (const std::size_t n : exchanges_[point - 2 * count].receivers) visit(count + n, 0U);
    }
  };
  std::vector<std::size_t> waiting_for(points, 0);
  std::vector<std::uint32_t> layers(points, 0);
  for (std::size_t point = 0; point < points; ++point) {
    followers(point, [&](std::size_t next, std::uint32_t) { ++waiting_for[next]; });
  }
  std::vector<std::size_t> ready;
  for (std::size_t point = 0; point < points; ++point) {
    if (waiting_for[point] == 0) ready.push_back(point);
  }
  std::size_t seen = 0;
  while (!ready.empty()) {
    const std::size_t point = ready.back();
    ready.pop_back();
    ++seen;
    followers(point, [&](std::size_t next, std::uint32_t step) {
      layers[next] = std::max(layers[next], layers[point] + step);
      if (--waiting_for[next] == 0) ready.push_back(next);
    });
  }
  contradictory_ = seen < points;
  const auto place = [&](std::size_t n) { return static_cast<std::uint32_t>(n - first_[nodes_[n].rank]); };
  for (std::size_t e = 0; e < exchanges_.size(); ++e) {
    Exchange& exchange = exchanges_[e];
    const std::vector<std::size_t>& members =
        exchange.senders.empty() ? exchange.receivers : exchange.senders;
    exchange.layer = contradictory_ ? place(members[0]) : layers[2 * count + e];
  }
  for (std::size_t n = 0; n < count; ++n) {
    GraphCall& node = nodes_[n];
    node.giving = contradictory_ ? place(n) : layers[n];
    node.done = contradictory_ ? place(n) : layers[count + n];
    for (const std::size_t e : gives[n]) node.giving = std::max(node.giving, exchanges_[e].layer);
  }
  std::ranges::stable_sort(exchanges_,
                           [](const Exchange& a, const Exchange& b) { return a.layer < b.layer; });
}

}  // namespace msprobe::dump
