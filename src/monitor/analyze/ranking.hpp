// SPDX-License-Identifier: Apache-2.0
// Which alert was the first: the order in which training came to them.
#pragma once

#include <cstdint>
#include <vector>

#include "monitor/analyze/alert_file.hpp"

namespace msprobe::monitor {

/// How alerts of one step are ordered.
enum class RankingRules : std::uint8_t {
  /// As a step goes: what the step before left (moments, parameters), each micro batch forward and backward,
  /// then
  /// communication, reduced gradients, the update.
  timeline,
  /// That of the Python tool: parameters, communication and directions first, micro steps as the record has
  /// them.
  python,
};

/// From the first to the last. Forward passes go up the stages of the pipeline, backward ones down. What is
/// equal in all of that keeps its order.
void rank_alerts(std::vector<Alert>& alerts, RankingRules rules);

}  // namespace msprobe::monitor
