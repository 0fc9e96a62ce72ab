// SPDX-License-Identifier: Apache-2.0
#include "compare/analysis/search.hpp"

#include <tuple>

#include "dump/communication_graph.hpp"

namespace msprobe::compare {
namespace {

/// The first differing entry of each rank before its communication (DifferencePhase::before), where the
/// search begins, or after the last (DifferencePhase::after), where it ends.
FirstDifference outside_communication(const std::vector<RankDifferences>& ranks, DifferencePhase phase) {
  FirstDifference result;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const bool before = phase == DifferencePhase::before;
    const auto& entry = before ? ranks[r].first_in.front() : ranks[r].first_in.back();
    if (entry && (before || !ranks[r].comms.empty())) result.places.push_back({r, &*entry, false});
  }
  if (!result.places.empty()) result.phase = phase;
  return result;
}

}  // namespace

FirstDifference search_first_difference(const std::vector<RankDifferences>& ranks,
                                        const pairing::Rules& rules) {
  FirstDifference result = outside_communication(ranks, DifferencePhase::before);
  if (result.phase != DifferencePhase::none) return result;
  std::vector<dump::RankCommunication> communication;
  for (const RankDifferences& rank : ranks) {
    dump::RankCommunication& one = communication.emplace_back();
    one.number = rank.number;
    for (const ComparedCommunication& comm : rank.comms) one.calls.push_back(&comm);
  }
  const dump::CommGraph graph(communication, rules.names_source);
  // An entry computed before a call comes before the results of all calls of its layer.
  using EntryKey = std::tuple<std::uint32_t, bool, std::uint32_t>;
  EntryKey least{UINT32_MAX, true, UINT32_MAX};
  const auto offer = [&](const EntryKey& key, const FirstDifference::DifferencePlace& place) {
    if (key > least) return;
    if (key < least) result.places.clear();
    least = key;
    result.places.push_back(place);
  };
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    for (std::size_t i = 0; i < ranks[r].comms.size(); ++i) {
      const std::size_t node = graph.first(r) + i;
      if (const auto& compute = ranks[r].first_in[i])
        offer({graph.giving_layer(node), false, compute->sub_layer}, {r, &*compute, false});
      if (const auto& comm = ranks[r].comms[i].found)
        offer({graph.done_layer(node), true, 0}, {r, &*comm, true});
    }
  }
  if (result.places.empty()) return outside_communication(ranks, DifferencePhase::after);
  result.phase = DifferencePhase::during;
  result.doubt = graph.uneven();
  if (graph.contradictory())
    result.doubt =
        "the communication calls of the ranks contradict each other; entries are ordered by their position "
        "within each rank";
  return result;
}

}  // namespace msprobe::compare
