// SPDX-License-Identifier: Apache-2.0
// Checks the section of task free_benchmark: which perturbation, where, and the use of the second result. The
// front end, which makes the calls, reads the keys by setting(); this code only rejects wrong ones.
#pragma once

#include "collector/config_reader.hpp"

namespace msprobe::collector {

/// Throws FormatError with the key and the right values.
void check_perturbation(const ConfigReader& section);

}  // namespace msprobe::collector
