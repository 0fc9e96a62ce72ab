// SPDX-License-Identifier: Apache-2.0
// The namespaces of lower folders whose names this folder uses unqualified.
#pragma once

#include "measuring/imports.hpp"

namespace msprobe::verdict {
using namespace measuring;
using namespace pairing;
}  // namespace msprobe::verdict
