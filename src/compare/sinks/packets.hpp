// SPDX-License-Identifier: Apache-2.0
// Carries the data that outputs keep of a task from process to process.
#pragma once

#include "compare/sinks/report_data.hpp"
#include "compare/sinks/sink.hpp"
#include "compare/sinks/story.hpp"
#include "dump/communication_packet.hpp"
#include "support/packet.hpp"

namespace msprobe::compare {

void carry(auto& packet, Carried<NotedRow> auto& row) {
  packet(row.name, row.verdict, row.measure, row.reason, row.weight, row.index);
}

void carry(auto& packet, Carried<TaskSummary> auto& task) {
  packet(task.label, task.step, task.rank, task.target, task.golden, task.failure, task.mode, task.rows,
         task.errors, task.warnings, task.unmatched, task.golden_only, task.unreadable, task.unknown,
         task.measured, task.coverage, task.not_judged, task.not_judged_by_limits, task.mapping_applies,
         task.left_out, task.rows_left_out, task.entries, task.entries_left_out, task.stopped_behind,
         task.first_bad, task.first_unreadable, task.worst, task.worst_by, task.no_values, task.advice,
         task.files);
}

void carry(auto& packet, Carried<SimilarName> auto& similar) {
  packet(similar.distance, similar.name);
}

void carry(auto& packet, Carried<PackedRank::Chunk> auto& chunk) {
  packet(chunk.rows, chunk.columns);
}

void carry(auto& packet, Carried<PackedRank> auto& rank) {
  packet(rank.names, rank.chunks, rank.left_out, rank.first_bad, rank.number, rank.calls, rank.call_entries);
}

}  // namespace msprobe::compare
