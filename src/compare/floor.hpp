// SPDX-License-Identifier: Apache-2.0
// The floors below, whose names this one uses as its own.
#pragma once

#include "verdict/floor.hpp"

namespace msprobe::compare {
using namespace verdict;
using namespace measuring;
using namespace pairing;
}  // namespace msprobe::compare
