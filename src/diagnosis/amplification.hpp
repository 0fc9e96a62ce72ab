// SPDX-License-Identifier: Apache-2.0
// How much larger the relative error of an output is than the errors of the inputs that it follows from.
#pragma once

#include <cstdint>

#include "dump/operations.hpp"
#include "dump/side.hpp"

namespace msprobe::diagnosis {

/// The factor by which an operation may enlarge an error of its inputs, from the sizes of its inputs and
/// outputs: a sum that cancels has a small output and keeps the absolute error. From 1 to kFar.
double amplification(const dump::Side& side, std::uint32_t api, dump::Nature nature);

/// The relative error that the rounding of a call's inputs and outputs leaves in its outputs.
double rounding_of(const dump::Side& side, std::uint32_t api);

}  // namespace msprobe::diagnosis
