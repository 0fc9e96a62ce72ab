// SPDX-License-Identifier: Apache-2.0
// Carries the result of comparing a parameter between processes.
#pragma once

#include "checkpoint/compare.hpp"
#include "support/packet.hpp"

namespace msprobe::checkpoint {

void carry(auto& packet, Carried<Unrounded> auto& unrounded) {
  packet(unrounded.tried, unrounded.count, unrounded.first);
}

void carry(auto& packet, Carried<ElementCounts> auto& side) {
  packet(side.nan, side.infinite, side.zero, side.denormal, side.least, side.most);
}

void carry(auto& packet, Carried<PairMetrics> auto& metrics) {
  packet(metrics.bitwise_equal, metrics.unequal, metrics.first_unequal, metrics.unrounded, metrics.l2,
         metrics.cosine, metrics.relative_l2, metrics.max_abs, metrics.max_ulp, metrics.first,
         metrics.second);
}

void carry(auto& packet, Carried<Relation> auto& relation) {
  packet(relation.text, relation.is_proved, relation.place, relation.first_content, relation.second_content);
}

void carry(auto& packet, Carried<StepCheck> auto& steps) {
  packet(steps.tried, steps.beyond, steps.first, steps.farthest, steps.farthest_at, steps.farthest_of_chunk,
         steps.as_searched, steps.says_nothing);
}

void carry(auto& packet, Carried<ParameterResult> auto& result) {
  packet(result.name, result.status, result.metrics, result.compared, result.first_shape, result.second_shape,
         result.first_dtype, result.second_dtype, result.first_place, result.steps, result.relation,
         result.copies_differ, result.is_nan, result.step_note, result.note);
}

}  // namespace msprobe::checkpoint
