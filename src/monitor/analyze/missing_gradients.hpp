// SPDX-License-Identifier: Apache-2.0
// Removes false alerts: the Python tool's monitor also alerts if there was no tensor.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "monitor/analyze/alert_file.hpp"

namespace msprobe::monitor {

/// The folder of the csv files that belong to alerts: `folder`, or its parent if `folder` is
/// anomaly_detected.
std::string folder_of_series(const std::string& folder);

/// Removes alerts of NaN in activations and their gradients if the csv files have no row for them, or a row
/// without a tensor: such a NaN was never measured. `folder` holds the alerts: it is anomaly_detected or its
/// parent. Alerts that no csv file covers stay. Returns how many alerts were removed.
std::size_t drop_missing_gradients(const std::string& folder, std::vector<Alert>& alerts);

}  // namespace msprobe::monitor
