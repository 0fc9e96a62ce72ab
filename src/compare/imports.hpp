// SPDX-License-Identifier: Apache-2.0
// The namespaces of lower folders whose names this folder uses unqualified.
#pragma once

#include "verdict/imports.hpp"

namespace msprobe::compare {
using namespace verdict;
using namespace measuring;
using namespace pairing;
}  // namespace msprobe::compare
