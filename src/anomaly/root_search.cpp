// SPDX-License-Identifier: Apache-2.0
// The corrected search: the phases of the Python tool, on a graph that connects the calls that belong
// together.
#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

#include "anomaly/search.hpp"
#include "dump/communication_graph.hpp"
#include "support/text.hpp"

namespace msprobe::anomaly {
namespace {

constexpr std::size_t kNone = SIZE_MAX;

/// The suspects of one rank, by the communication that follows them.
class RankSuspects {
 public:
  explicit RankSuspects(const RankScan& scan) : scan_(scan), by_interval_(scan.comms.size() + 1, kNone) {
    for (std::size_t i = 0; i < scan.suspects.size(); ++i) {
      std::size_t& slot = by_interval_[scan.suspects[i].interval];
      // Bad values that spread no further are a mask rather than a fault.
      if (slot == kNone || (scan.suspects[slot].contained && !scan.suspects[i].contained)) slot = i;
    }
  }

  /// The suspect of an interval, or null.
  const SuspectEntry* in(std::size_t interval) const {
    const std::size_t index = by_interval_[interval];
    return index == kNone ? nullptr : &scan_.suspects[index];
  }
  /// The NaN that entered from outside in this interval, or null.
  const SuspectEntry* external_nan(std::size_t interval) const {
    if (!scan_.external || scan_.external_is_comm || scan_.external->interval != interval) return nullptr;
    const SuspectEntry& suspect = *scan_.external;
    return (suspect.inputs & kNan) != 0 && suspect.outputs != 0 ? &suspect : nullptr;
  }

 private:
  const RankScan& scan_;
  std::vector<std::size_t> by_interval_;
};

class RootSearch {
 public:
  RootSearch(const std::vector<RankInput>& ranks, const AnomalyRules& rules, const Tell& tell)
      : ranks_(ranks), tell_(tell), graph_(communication_of(ranks), rules.names_source) {
    for (const RankInput& rank : ranks) suspects_.emplace_back(rank.scan);
    find_origins();
  }

  std::vector<AnomalyRoot> first() {
    tell_(Remark::progress, "searching entries before communication");
    std::vector<AnomalyRoot> roots = before_communication();
    if (!roots.empty()) return finish(std::move(roots));
    tell_(Remark::progress, "searching entries during communication");
    warn_of_doubts();
    roots = during_communication();
    if (!roots.empty()) {
      roots = {*std::ranges::min_element(roots, earlier)};
      return finish(std::move(roots));
    }
    tell_(Remark::progress, "searching entries after communication");
    roots = after_communication();
    if (roots.empty()) roots = otherwise();
    if (roots.empty()) roots = raised();
    return finish(std::move(roots));
  }

  std::vector<AnomalyRoot> all() {
    warn_of_doubts();
    std::vector<AnomalyRoot> roots = before_communication();
    for (std::vector<AnomalyRoot> more : {during_communication(), all_suspects(), otherwise(), raised()})
      roots.insert(roots.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
    std::ranges::stable_sort(roots, earlier);
    std::vector<AnomalyRoot> independent;
    std::vector<std::uint32_t> bad_from(ranks_.size(), UINT32_MAX);
    std::set<std::pair<std::size_t, std::uint32_t>> seen;
    for (AnomalyRoot& root : roots) {
      // The rank had bad values already, or this root was found before in another way.
      if (bad_from[root.rank] <= root.entry.position) continue;
      if (!seen.emplace(root.rank, root.entry.position).second) continue;
      // An entry that made bad values from clean ones is a root regardless of bad values from outside.
      if (root.kind != RootKind::external) bad_from[root.rank] = root.entry.position;
      find_path(root);
      for (const Reached& reached : root.path)
        bad_from[reached.rank] = std::min(bad_from[reached.rank], reached.entry.position);
      independent.push_back(std::move(root));
    }
    return independent;
  }

 private:
  static bool earlier(const AnomalyRoot& a, const AnomalyRoot& b) {
    const auto key = [](const AnomalyRoot& root) {
      return std::tuple(root.contained, root.layer, root.kind == RootKind::communication, root.sub_layer,
                        root.rank, root.entry.position);
    };
    return key(a) < key(b);
  }

  void warn_of_doubts() const {
    if (graph_.contradictory())
      tell_(Remark::warning,
            "the communication calls of the ranks contradict each other; entries are ordered by their "
            "position within each "
            "rank");
    if (!graph_.uneven().empty()) {
      tell_(Remark::warning,
            graph_.uneven() + "; calls are matched by their numbers, so some may be matched wrongly");
    }
  }

  /// The origin of the bad input of each communication entry.
  struct InputOrigin {
    std::size_t interval = kNone;
    bool external = false;
  };

  void find_origins() {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const RankScan& scan = ranks_[r].scan;
      InputOrigin origin;
      for (std::size_t i = 0; i < scan.comms.size(); ++i) {
        // Bad values that an earlier communication brought in are explained at that communication.
        if (i > 0 && scan.comms[i - 1].bad.outputs != 0) origin = {};
        // The external value is the first bad one of its rank. An Inf from outside is usually a mask.
        const bool external = scan.external && scan.external->interval == i;
        if (suspects_[r].in(i) != nullptr && suspects_[r].external_nan(i) == nullptr) {
          origin = {i, false};
        } else if (external && origin.interval == kNone) {
          origin = {i, true};
        }
        origins_.push_back(origin);
      }
    }
  }

  const ScannedCommunication& comm_of(std::size_t node) const {
    const std::size_t rank = graph_.rank(node);
    return ranks_[rank].scan.comms[node - graph_.first(rank)];
  }

  std::uint32_t layer_of(std::size_t rank, std::size_t interval) const {
    const std::size_t node = graph_.first(rank) + interval;
    if (node < graph_.first(rank + 1)) return graph_.giving_layer(node);
    return interval == 0 ? 0 : graph_.done_layer(node - 1) + 1;
  }

  AnomalyRoot root_of(std::size_t rank, const SuspectEntry& suspect, RootKind kind, RootPhase phase) const {
    AnomalyRoot root;
    root.rank = rank;
    root.kind = kind;
    root.phase = phase;
    root.entry = suspect.place;
    root.inputs = suspect.inputs;
    root.outputs = suspect.outputs;
    root.layer = layer_of(rank, suspect.interval);
    root.sub_layer = suspect.sub_layer;
    return root;
  }

  /// The first suspect of each rank before its communication; if no rank has one, NaN from outside.
  std::vector<AnomalyRoot> before_communication() const {
    std::vector<AnomalyRoot> roots;
    std::vector<AnomalyRoot> externals;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const SuspectEntry* suspect = suspects_[r].in(0);
      if (suspect != nullptr && !suspect->contained)
        roots.push_back(root_of(r, *suspect, RootKind::produced, RootPhase::before));
      if (const SuspectEntry* external = suspects_[r].external_nan(0))
        externals.push_back(root_of(r, *external, RootKind::external, RootPhase::before));
    }
    return roots.empty() ? externals : roots;
  }

  std::vector<AnomalyRoot> during_communication() const {
    std::vector<AnomalyRoot> roots;
    std::vector<bool> explained(graph_.nodes(), false);
    for (const dump::Exchange& exchange : graph_.exchanges()) {
      bool bad = false;
      for (const std::size_t n : exchange.senders) {
        if (comm_of(n).bad.inputs == 0) continue;
        bad = true;
        add_origin(n, roots);
      }
      for (const std::size_t n : exchange.receivers) explained[n] = explained[n] || bad;
    }
    for (std::size_t n = 0; n < graph_.nodes(); ++n) {
      const ScannedCommunication& comm = comm_of(n);
      if (explained[n] || comm.bad.inputs != 0 || comm.bad.outputs == 0) continue;
      AnomalyRoot root;
      root.rank = graph_.rank(n);
      root.kind = RootKind::communication;
      root.phase = RootPhase::during;
      root.entry = comm.place;
      root.outputs = comm.bad.outputs;
      root.layer = graph_.done_layer(n);
      root.sub_layer = comm.sub_layer;
      root.absent_ranks = absent_ranks(comm);
      roots.push_back(std::move(root));
    }
    return roots;
  }

  void add_origin(std::size_t node, std::vector<AnomalyRoot>& roots) const {
    const InputOrigin& origin = origins_[node];
    if (origin.interval == kNone) return;
    const std::size_t rank = graph_.rank(node);
    const RankScan& scan = ranks_[rank].scan;
    const SuspectEntry& suspect = origin.external ? *scan.external : *suspects_[rank].in(origin.interval);
    roots.push_back(
        root_of(rank, suspect, origin.external ? RootKind::external : RootKind::produced, RootPhase::during));
  }

  std::vector<std::int64_t> absent_ranks(const ScannedCommunication& comm) const {
    std::vector<std::int64_t> absent;
    const auto add = [&](std::int64_t number) {
      const bool here = std::ranges::any_of(
          ranks_, [&](const RankInput& rank) { return rank.number == number && rank.failure.empty(); });
      if (!here) absent.push_back(number);
    };
    if (comm.call.group_ranks) {
      std::for_each(comm.call.group_ranks->begin(), comm.call.group_ranks->end(), add);
    } else if (is_collective(comm)) {
      for (const RankInput& rank : ranks_) add(rank.number);
    }
    for (const dump::Transfer& transfer : comm.call.transfers) {
      if (!transfer.sends) add(transfer.peer);
    }
    if (const auto source = named_rank(comm.call, true)) add(*source);
    std::ranges::sort(absent);
    absent.erase(std::unique(absent.begin(), absent.end()), absent.end());
    return absent;
  }

  /// Suspects whose bad values never entered communication.
  std::vector<AnomalyRoot> after_communication() const {
    std::vector<AnomalyRoot> roots;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const std::size_t intervals = ranks_[r].scan.comms.size();
      for (std::size_t i = 1; i <= intervals; ++i) {
        const SuspectEntry* suspect = suspects_[r].in(i);
        if (suspect == nullptr || suspect->contained) continue;
        roots.push_back(root_of(r, *suspect, RootKind::produced, RootPhase::after));
        break;
      }
    }
    return roots;
  }

  /// The remaining candidates: NaN from outside, NaN made from Inf, bad values that spread no further; the
  /// first one of each rank.
  std::vector<AnomalyRoot> otherwise() const {
    std::vector<AnomalyRoot> roots;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const RankScan& scan = ranks_[r].scan;
      std::optional<AnomalyRoot> first;
      const auto offer = [&](const SuspectEntry& suspect, RootKind kind) {
        if (first && first->entry.position <= suspect.place.position) return;
        first = root_of(r, suspect, kind, RootPhase::otherwise);
        first->contained = suspect.contained;
      };
      if (scan.external) {
        if (const SuspectEntry* external = suspects_[r].external_nan(scan.external->interval))
          offer(*external, RootKind::external);
      }
      if (scan.inf_to_nan) offer(*scan.inf_to_nan, RootKind::inf_to_nan);
      if (!first && !scan.suspects.empty()) offer(scan.suspects[0], RootKind::produced);
      if (first) roots.push_back(*std::move(first));
    }
    return roots;
  }

  /// The first entry of each rank that task nan_check flagged, in the order of execution.
  std::vector<AnomalyRoot> raised() const {
    std::vector<AnomalyRoot> roots;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (const auto& raised = ranks_[r].scan.raised)
        roots.push_back(root_of(r, *raised, RootKind::raised, RootPhase::otherwise));
    }
    std::ranges::stable_sort(roots, earlier);
    return roots;
  }

  std::vector<AnomalyRoot> all_suspects() const {
    std::vector<AnomalyRoot> roots;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      for (const SuspectEntry& suspect : ranks_[r].scan.suspects) {
        if (!suspect.contained)
          roots.push_back(root_of(r, suspect, RootKind::produced, RootPhase::otherwise));
      }
    }
    return roots;
  }

  std::vector<AnomalyRoot> finish(std::vector<AnomalyRoot> roots) const {
    for (AnomalyRoot& root : roots) find_path(root);
    return roots;
  }

  /// Follows the bad values from rank to rank.
  void find_path(AnomalyRoot& root) const {
    std::vector<std::uint32_t> bad_from(ranks_.size(), UINT32_MAX);
    bad_from[root.rank] = root.entry.position;
    for (const dump::Exchange& exchange : graph_.exchanges()) {
      const auto carries = [&](std::size_t n) {
        const ScannedCommunication& comm = comm_of(n);
        if (comm.place.position < bad_from[graph_.rank(n)]) return false;
        const bool is_root = graph_.rank(n) == root.rank && comm.place.position == root.entry.position;
        return comm.bad.inputs != 0 || is_root;
      };
      auto carrier = std::ranges::find_if(exchange.senders, carries);
      // If the root is a receiver, it passes nothing on. If the root is a collective, it reaches all members.
      if (carrier == exchange.senders.end()) continue;
      for (const std::size_t n : exchange.receivers) {
        const std::size_t rank = graph_.rank(n);
        if (bad_from[rank] != UINT32_MAX || comm_of(n).bad.outputs == 0) continue;
        bad_from[rank] = comm_of(n).place.position;
        root.path.push_back({rank, comm_of(n).place, graph_.rank(*carrier)});
      }
    }
  }

  const std::vector<RankInput>& ranks_;
  const Tell& tell_;
  dump::CommGraph graph_;
  std::vector<RankSuspects> suspects_;
  std::vector<InputOrigin> origins_;  // for each node
};

}  // namespace

std::vector<dump::RankCommunication> communication_of(const std::vector<RankInput>& ranks) {
  std::vector<dump::RankCommunication> all;
  for (const RankInput& rank : ranks) {
    dump::RankCommunication& one = all.emplace_back();
    one.number = rank.number;
    for (const ScannedCommunication& comm : rank.scan.comms) one.calls.push_back(&comm);
  }
  return all;
}

std::vector<AnomalyRoot> search_roots(const std::vector<RankInput>& ranks, const AnomalyRules& rules,
                                      bool all, const Tell& tell) {
  RootSearch search(ranks, rules, tell);
  return all ? search.all() : search.first();
}

}  // namespace msprobe::anomaly
