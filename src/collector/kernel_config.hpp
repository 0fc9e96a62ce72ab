// SPDX-License-Identifier: Apache-2.0
// Reads the section of a task at level L2: the kernels that the runtime of an NPU dumps for the front end.
#pragma once

#include "collector/config.hpp"
#include "collector/config_reader.hpp"

namespace msprobe::collector {

/// Reads and checks the section. With PyTorch, the name of the call whose kernels are dumped becomes the only
/// name in `config.list`.
void read_kernels(const ConfigReader& common, const ConfigReader& section, Config& config);

}  // namespace msprobe::collector
