// SPDX-License-Identifier: Apache-2.0
// The order in which the training came to its alerts.
#pragma once

#include <vector>

#include "monitor/analyze/alert_file.hpp"

namespace msprobe::monitor {

/// From the first to the last, as a step goes: what the step before left (moments, parameters), each micro
/// batch forward and backward, then communication, reduced gradients, the update. Forward passes go up the
/// stages of the pipeline, backward ones down. Alerts that are equal in all of that keep their order.
void rank_alerts(std::vector<Alert>& alerts);

}  // namespace msprobe::monitor
