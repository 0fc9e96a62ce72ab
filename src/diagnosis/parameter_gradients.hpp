// SPDX-License-Identifier: Apache-2.0
// Compares the gradients of the parameters that two implementations share.
#pragma once

#include <cstdint>
#include <string>

#include "diagnosis/implementation.hpp"
#include "diagnosis/parameter_map.hpp"

namespace msprobe::diagnosis {

struct ParameterGradients {
  std::uint64_t compared = 0;  // groups of parameters
  std::uint64_t unknown = 0;   // groups with no gradient or several on one side
  std::uint32_t other =
      pairing::kNone;  // the parameter nearest to the loss whose gradient differs; kNone: no gradient does
  std::string said;    // the words about it that follow its name
};

/// Compares the gradient of each parameter that both sides share. It compares nothing where one side records
/// no gradients, or several micro-batches. `drift`: the error that rounding grew to in the updates before
/// these steps.
ParameterGradients compare_parameter_gradients(const Implementation& ours, const Implementation& theirs,
                                               const ParameterMap& parameters, double drift);

}  // namespace msprobe::diagnosis
