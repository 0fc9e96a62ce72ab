// SPDX-License-Identifier: Apache-2.0
// Where the error of each tensor comes from, once all evidence of the rank is there.
#pragma once

#include "diagnosis/walk.hpp"

namespace msprobe::diagnosis {

void find_origins(Walk& walk);

}  // namespace msprobe::diagnosis
