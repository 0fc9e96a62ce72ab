// SPDX-License-Identifier: Apache-2.0
// Packs the data that is kept of a rank until all ranks are judged together, to send it between processes.
#pragma once

#include "diagnosis/rank_diagnosis.hpp"
#include "dump/communication_packet.hpp"
#include "support/packet.hpp"

namespace msprobe::diagnosis {

void carry(auto& packet, Carried<Finding> auto& finding) {
  packet(finding.kind, finding.rule, finding.confidence, finding.excess, finding.u, finding.order,
         finding.target_api, finding.item, finding.downstream, finding.apart, finding.joined, finding.entry,
         finding.golden_entry, finding.place, finding.step, finding.rank, finding.module, finding.side,
         finding.text, finding.where, finding.next, finding.concerned, finding.repeated, finding.other_ranks,
         finding.propagated, finding.propagated_largest, finding.propagated_entry, finding.golden_where,
         finding.operations, finding.golden_operations);
}

void carry(auto& packet, Carried<CommPlace> auto& place) {
  packet(place.call, place.entry, place.golden_entry, place.module, place.where, place.api, place.e_in,
         place.e_out, place.u, place.arrived, place.follows);
}

void carry(auto& packet, Carried<MeetingPoint> auto& point) {
  packet(point.entry, point.golden_entry, point.error);
}

void carry(auto& packet, Carried<RankFindings> auto& rank) {
  packet(rank.step, rank.rank, rank.number, rank.tensors, rank.threshold, rank.findings, rank.evidence,
         rank.communication, rank.changed_gradients, rank.drifted, rank.apart, rank.notes,
         rank.early_end.whose, rank.early_end.where, rank.meeting_points, rank.agreement, rank.stopped,
         rank.left_out, rank.counts, rank.coverage, rank.unread, rank.broken_off, rank.first_broken_off,
         rank.agreeing, rank.rounded, rank.largest_before, rank.propagated_largest, rank.propagated_entry,
         rank.largest_excess, rank.largest_entry, rank.visible, rank.visible_module);
}

}  // namespace msprobe::diagnosis
