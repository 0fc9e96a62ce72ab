// SPDX-License-Identifier: Apache-2.0
// The names of the folders below, which this one uses unqualified.
#pragma once

#include "verdict/imports.hpp"

namespace msprobe::compare {
using namespace verdict;
using namespace measuring;
using namespace pairing;
}  // namespace msprobe::compare
