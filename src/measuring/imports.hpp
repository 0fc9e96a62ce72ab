// SPDX-License-Identifier: Apache-2.0
// The names of the folders below, which this one uses unqualified.
#pragma once

#include "pairing/side.hpp"

namespace msprobe::measuring {
using namespace pairing;
}  // namespace msprobe::measuring
