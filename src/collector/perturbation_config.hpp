// SPDX-License-Identifier: Apache-2.0
// The section of task free_benchmark: which perturbation, where, and what becomes of the second result. The
// front end, which calls, reads the keys by setting(); here wrong ones are refused.
#pragma once

#include "collector/config_reader.hpp"

namespace msprobe::collector {

/// FormatError that names the key and what would be right.
void check_perturbation(const ConfigReader& section);

}  // namespace msprobe::collector
