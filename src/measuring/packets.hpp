// SPDX-License-Identifier: Apache-2.0
// Rows that were measured in another process.
#pragma once

#include "measuring/tensor_rows.hpp"
#include "support/packet.hpp"

namespace msprobe::measuring {

void carry(auto& packet, Carried<Measure> auto& measure) {
  packet(measure.n, measure.e, measure.b, measure.gain, measure.norm_target, measure.norm_golden,
         measure.known, measure.blind);
}

}  // namespace msprobe::measuring

namespace msprobe::measuring {

void carry(auto& packet, Carried<TensorMetrics> auto& metrics) {
  packet(metrics.status, metrics.is_scalar, metrics.value, metrics.measure, metrics.messages,
         metrics.not_multiplied, metrics.failed);
}

void carry(auto& packet, Carried<MeasuredRows> auto& measured) {
  packet(measured.rows, measured.first, measured.metrics);
}

}  // namespace msprobe::measuring
