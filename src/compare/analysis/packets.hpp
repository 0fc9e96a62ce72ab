// SPDX-License-Identifier: Apache-2.0
// Carries the facts of a rank that the search for the first difference needs from process to process.
#pragma once

#include "compare/analysis/rank_differences.hpp"
#include "dump/communication_packet.hpp"
#include "support/packet.hpp"

namespace msprobe::compare {

void carry(auto& packet, Carried<FoundEntry> auto& entry) {
  packet(entry.name, entry.sub_layer, entry.info, entry.what, entry.at);
}

void carry(auto& packet, Carried<ComparedCommunication> auto& node) {
  packet(base_of<dump::Communication>(node), node.name, node.sub_layer, node.found);
}

void carry(auto& packet, Carried<RankDifferences> auto& rank) {
  packet(rank.label, rank.number, rank.entries, rank.differing, rank.coverage, rank.mapping_applies,
         rank.comms, rank.first_in);
}

}  // namespace msprobe::compare
