// SPDX-License-Identifier: Apache-2.0
// Imports the names of lower folders that src/diagnosis uses unqualified.
#pragma once

#include "pairing/side.hpp"

namespace msprobe::measuring {}

namespace msprobe::diagnosis {
using namespace measuring;
using namespace pairing;
}  // namespace msprobe::diagnosis
