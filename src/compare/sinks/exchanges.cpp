// SPDX-License-Identifier: Apache-2.0
// Matches communication for the HTML report: which entries of different ranks belong together.
#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "compare/sinks/report_data.hpp"
#include "dump/communication_graph.hpp"
#include "support/json_writer.hpp"

namespace msprobe::compare {

std::string exchanges_json(const std::vector<PackedRank>& ranks, const std::vector<std::string>& steps) {
  std::map<std::string, std::vector<std::size_t>> ranks_of_step;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    if (!ranks[i].calls.empty()) ranks_of_step[steps[i]].push_back(i);
  }
  JsonWriter json({.compact = true, .text = JsonText::utf8});
  json.open_list();
  for (const auto& [step, which] : ranks_of_step) {
    std::vector<dump::RankCommunication> communication;
    for (const std::size_t index : which) {
      dump::RankCommunication& one = communication.emplace_back();
      one.number = ranks[index].number;
      for (const dump::Communication& call : ranks[index].calls) one.calls.push_back(&call);
    }
    const dump::CommGraph graph(communication, {});
    for (const dump::Exchange& exchange : graph.exchanges()) {
      std::vector<std::size_t> nodes = exchange.senders;
      nodes.insert(nodes.end(), exchange.receivers.begin(), exchange.receivers.end());
      std::ranges::sort(nodes);
      nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
      if (nodes.empty() || graph.rank(nodes.front()) == graph.rank(nodes.back())) continue;
      std::vector<std::uint64_t> places;
      for (const std::size_t node : nodes) {
        const std::size_t rank = graph.rank(node);
        places.push_back(which[rank]);
        places.push_back(ranks[which[rank]].call_entries[node - graph.first(rank)]);
      }
      json.element();
      json.value(places);
    }
  }
  json.close();
  return json.take();
}

}  // namespace msprobe::compare
