// SPDX-License-Identifier: Apache-2.0
// The order in which the training came to its alerts.
#pragma once

#include <vector>

#include "monitor/analyze/alert_file.hpp"

namespace msprobe::monitor {

/// Sorts alerts in the order of a step: first the results of the previous step (moments, parameters), then
/// each micro batch forward and backward, then communication, reduced gradients, and the update. Forward
/// passes go up the stages of the pipeline, backward passes down. Alerts that are equal in all this keep
/// their order.
void rank_alerts(std::vector<Alert>& alerts);

}  // namespace msprobe::monitor
