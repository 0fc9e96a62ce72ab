// SPDX-License-Identifier: Apache-2.0
// Serializes the scan of a rank for transport between processes.
#pragma once

#include "anomaly/details.hpp"
#include "anomaly/levels.hpp"
#include "anomaly/rank_scan.hpp"
#include "dump/communication_packet.hpp"
#include "support/packet.hpp"

namespace msprobe::dump {

inline void carry(PacketWriter& packet, const Entry& entry) {
  entry.pack(packet);
}

inline void carry(PacketReader& packet, Entry& entry) {
  entry.unpack(packet);
}

void carry(auto& packet, Carried<LossScaling> auto& scaling) {
  packet(scaling.scale, scaling.skipped);
}

/// The search needs only the loss scale of the training's settings.
void carry(auto& packet, Carried<Header> auto& header) {
  packet(header.task, header.level, header.framework, header.recorder, header.has_data, header.data_directory,
         header.training.loss_scale);
}

}  // namespace msprobe::dump

namespace msprobe::anomaly {

void carry(auto& packet, Carried<ScannedEntry> auto& place) {
  packet(place.name, place.position, place.offset, place.size);
}

void carry(auto& packet, Carried<EntryBadness> auto& bad) {
  packet(bad.inputs, bad.outputs);
}

void carry(auto& packet, Carried<ScannedCommunication> auto& node) {
  packet(base_of<dump::Communication>(node), node.place, node.sub_layer, node.bad);
}

void carry(auto& packet, Carried<SuspectEntry> auto& suspect) {
  packet(suspect.place, suspect.interval, suspect.sub_layer, suspect.inputs, suspect.outputs,
         suspect.contained);
}

void carry(auto& packet, Carried<BadGradient> auto& bad) {
  packet(bad.place, bad.overflow);
}

void carry(auto& packet, Carried<RankScan> auto& scan) {
  packet(scan.header, scan.entries, scan.coverage, scan.comms, scan.suspects, scan.first_bad,
         scan.bad_entries, scan.external, scan.external_is_comm, scan.inf_to_nan, scan.checked_entries,
         scan.raised_entries, scan.raised, scan.bad_gradient, scan.nan_in_forward);
}

void carry(auto& packet, Carried<RootDetails> auto& details) {
  packet(details.entry, details.construct, details.stack, details.stack_node, details.frames,
         details.frames_of_forward);
}

void carry(auto& packet, Carried<EntryFinding> auto& finding) {
  packet(finding.name, finding.level, finding.scene, finding.bad_arguments, finding.bad_keywords,
         finding.bad_outputs, finding.what, finding.where, finding.text);
}

void carry(auto& packet, Carried<EntryFindings> auto& rank) {
  packet(rank.entries, rank.coverage, rank.task, rank.found);
}

}  // namespace msprobe::anomaly
