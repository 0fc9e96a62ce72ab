// SPDX-License-Identifier: Apache-2.0
// The floors below, whose names this one uses as its own.
#pragma once

#include "measuring/floor.hpp"

namespace msprobe::diagnosis {
using namespace measuring;
using namespace pairing;
}  // namespace msprobe::diagnosis
