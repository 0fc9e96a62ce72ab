// SPDX-License-Identifier: Apache-2.0
// Finds where the error of each tensor comes from, once all evidence of the rank is known.
#pragma once

#include "diagnosis/walk.hpp"

namespace msprobe::diagnosis {

void find_origins(Walk& walk);

}  // namespace msprobe::diagnosis
