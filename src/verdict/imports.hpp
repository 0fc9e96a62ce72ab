// SPDX-License-Identifier: Apache-2.0
// The names of the folders below, which this one uses unqualified.
#pragma once

#include "measuring/imports.hpp"

namespace msprobe::verdict {
using namespace measuring;
using namespace pairing;
}  // namespace msprobe::verdict
