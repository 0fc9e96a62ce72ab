// SPDX-License-Identifier: Apache-2.0
// The section of a task at level L2: which kernels the runtime of an NPU dumps. The front end has it do so.
#pragma once

#include "collector/config.hpp"
#include "collector/config_reader.hpp"

namespace msprobe::collector {

/// Reads and checks it; with PyTorch the call whose kernels are dumped becomes `list`.
void read_kernels(const ConfigReader& common, const ConfigReader& section, Config& config);

}  // namespace msprobe::collector
