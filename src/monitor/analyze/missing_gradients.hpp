// SPDX-License-Identifier: Apache-2.0
// Alerts that the Python tool's monitor gives where there was no tensor.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "monitor/analyze/alert_file.hpp"

namespace msprobe::monitor {

/// The folder of the csv files beside alerts: `folder`, or what it lies in if it is anomaly_detected.
std::string folder_of_series(const std::string& folder);

/// Takes out alerts of NaN in activations and their gradients for which the csv files beside `folder` (where
/// the alerts are, anomaly_detected or the one that it is in) have a row without a tensor, or no row: what is
/// no number there was never measured. What no file tells of stays. Returns how many were taken out.
std::size_t drop_missing_gradients(const std::string& folder, std::vector<Alert>& alerts);

}  // namespace msprobe::monitor
