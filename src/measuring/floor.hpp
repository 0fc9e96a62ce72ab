// SPDX-License-Identifier: Apache-2.0
// The floors below, whose names this one uses as its own.
#pragma once

#include "pairing/side.hpp"

namespace msprobe::measuring {
using namespace pairing;
}  // namespace msprobe::measuring
