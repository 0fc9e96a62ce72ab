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
  const Suspect* in(std::size_t interval) const {
    const std::size_t index = by_interval_[interval];
    return index == kNone ? nullptr : &scan_.suspects[index];
  }
  /// The NaN that entered from outside in this interval, or null.
  const Suspect* external_nan(std::size_t interval) const {
    if (!scan_.external || scan_.external_is_comm || scan_.external->interval != interval) return nullptr;
    const Suspect& suspect = *scan_.external;
    return (suspect.inputs & kNan) != 0 && suspect.outputs != 0 ? &suspect : nullptr;
  }

 private:
  const RankScan& scan_;
  std::vector<std::size_t> by_interval_;
};

class RootSearch {
 public:
  RootSearch(const std::vector<RankInput>& ranks, const Rules& rules, const Tell& tell)
      : ranks_(ranks), tell_(tell), graph_(communication_of(ranks), rules.names_source) {
    for (const RankInput& rank : ranks) suspects_.emplace_back(rank.scan);
    find_origins();
  }

  std::vector<Root> first() {
    tell_(Remark::progress, "searching entries before communication");
    std::vector<Root> roots = before_communication();
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

  std::vector<Root> all() {
    warn_of_doubts();
    std::vector<Root> roots = before_communication();
    for (std::vector<Root> more : {during_communication(), all_suspects(), otherwise(), raised()})
      roots.insert(roots.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
    std::ranges::stable_sort(roots, earlier);
    std::vector<Root> independent;
    std::vector<std::uint32_t> bad_from(ranks_.size(), UINT32_MAX);
    std::set<std::pair<std::size_t, std::uint32_t>> seen;
    for (Root& root : roots) {
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
  static bool earlier(const Root& a, const Root& b) {
    const auto key = [](const Root& root) {
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
  struct Origin {
    std::size_t interval = kNone;
    bool external = false;
  };

  void find_origins() {
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const RankScan& scan = ranks_[r].scan;
      Origin origin;
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

  const CommNode& comm_of(std::size_t node) const {
    const std::size_t rank = graph_.rank(node);
    return ranks_[rank].scan.comms[node - graph_.first(rank)];
  }

  std::uint32_t layer_of(std::size_t rank, std::size_t interval) const {
    const std::size_t node = graph_.first(rank) + interval;
    if (node < graph_.first(rank + 1)) return graph_.giving_layer(node);
    return interval == 0 ? 0 : graph_.done_layer(node - 1) + 1;
  }

  Root root_of(std::size_t rank, const Suspect& suspect, RootKind kind, Phase phase) const {
    Root root;
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
  std::vector<Root> before_communication() const {
    std::vector<Root> roots;
    std::vector<Root> externals;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const Suspect* suspect = suspects_[r].in(0);
      if (suspect != nullptr && !suspect->contained)
        roots.push_back(root_of(r, *suspect, RootKind::produced, Phase::before));
      if (const Suspect* external = suspects_[r].external_nan(0))
        externals.push_back(root_of(r, *external, RootKind::external, Phase::before));
    }
    return roots.empty() ? externals : roots;
  }

  std::vector<Root> during_communication() const {
    std::vector<Root> roots;
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
      const CommNode& comm = comm_of(n);
      if (explained[n] || comm.bad.inputs != 0 || comm.bad.outputs == 0) continue;
      Root root;
      root.rank = graph_.rank(n);
      root.kind = RootKind::communication;
      root.phase = Phase::during;
      root.entry = comm.place;
      root.outputs = comm.bad.outputs;
      root.layer = graph_.done_layer(n);
      root.sub_layer = comm.sub_layer;
      root.absent_ranks = absent_ranks(comm);
      roots.push_back(std::move(root));
    }
    return roots;
  }

  void add_origin(std::size_t node, std::vector<Root>& roots) const {
    const Origin& origin = origins_[node];
    if (origin.interval == kNone) return;
    const std::size_t rank = graph_.rank(node);
    const RankScan& scan = ranks_[rank].scan;
    const Suspect& suspect = origin.external ? *scan.external : *suspects_[rank].in(origin.interval);
    roots.push_back(
        root_of(rank, suspect, origin.external ? RootKind::external : RootKind::produced, Phase::during));
  }

  std::vector<std::int64_t> absent_ranks(const CommNode& comm) const {
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
  std::vector<Root> after_communication() const {
    std::vector<Root> roots;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const std::size_t intervals = ranks_[r].scan.comms.size();
      for (std::size_t i = 1; i <= intervals; ++i) {
        const Suspect* suspect = suspects_[r].in(i);
        if (suspect == nullptr || suspect->contained) continue;
        roots.push_back(root_of(r, *suspect, RootKind::produced, Phase::after));
        break;
      }
    }
    return roots;
  }

  /// The remaining candidates: NaN from outside, NaN made from Inf, bad values that spread no further; the
  /// first one of each rank.
  std::vector<Root> otherwise() const {
    std::vector<Root> roots;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      const RankScan& scan = ranks_[r].scan;
      std::optional<Root> first;
      const auto offer = [&](const Suspect& suspect, RootKind kind) {
        if (first && first->entry.position <= suspect.place.position) return;
        first = root_of(r, suspect, kind, Phase::otherwise);
        first->contained = suspect.contained;
      };
      if (scan.external) {
        if (const Suspect* external = suspects_[r].external_nan(scan.external->interval))
          offer(*external, RootKind::external);
      }
      if (scan.inf_to_nan) offer(*scan.inf_to_nan, RootKind::inf_to_nan);
      if (!first && !scan.suspects.empty()) offer(scan.suspects[0], RootKind::produced);
      if (first) roots.push_back(*std::move(first));
    }
    return roots;
  }

  /// The first entry of each rank that task nan_check flagged, in the order of execution.
  std::vector<Root> raised() const {
    std::vector<Root> roots;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      if (const auto& raised = ranks_[r].scan.raised)
        roots.push_back(root_of(r, *raised, RootKind::raised, Phase::otherwise));
    }
    std::ranges::stable_sort(roots, earlier);
    return roots;
  }

  std::vector<Root> all_suspects() const {
    std::vector<Root> roots;
    for (std::size_t r = 0; r < ranks_.size(); ++r) {
      for (const Suspect& suspect : ranks_[r].scan.suspects) {
        if (!suspect.contained) roots.push_back(root_of(r, suspect, RootKind::produced, Phase::otherwise));
      }
    }
    return roots;
  }

  std::vector<Root> finish(std::vector<Root> roots) const {
    for (Root& root : roots) find_path(root);
    return roots;
  }

  /// Follows the bad values from rank to rank.
  void find_path(Root& root) const {
    std::vector<std::uint32_t> bad_from(ranks_.size(), UINT32_MAX);
    bad_from[root.rank] = root.entry.position;
    for (const dump::Exchange& exchange : graph_.exchanges()) {
      const auto carries = [&](std::size_t n) {
        const CommNode& comm = comm_of(n);
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
  std::vector<Origin> origins_;  // for each node
};

}  // namespace

std::vector<dump::RankCommunication> communication_of(const std::vector<RankInput>& ranks) {
  std::vector<dump::RankCommunication> all;
  for (const RankInput& rank : ranks) {
    dump::RankCommunication& one = all.emplace_back();
    one.number = rank.number;
    for (const CommNode& comm : rank.scan.comms) one.calls.push_back(&comm);
  }
  return all;
}

std::vector<Root> search_roots(const std::vector<RankInput>& ranks, const Rules& rules, bool all,
                               const Tell& tell) {
  RootSearch search(ranks, rules, tell);
  return all ? search.all() : search.first();
}

}  // namespace msprobe::anomaly
