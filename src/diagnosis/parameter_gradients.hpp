// SPDX-License-Identifier: Apache-2.0
// Gradients of the parameters that two implementations share.
#pragma once

#include <cstdint>
#include <string>

#include "diagnosis/implementation.hpp"
#include "diagnosis/parameter_map.hpp"

namespace msprobe::diagnosis {

struct ParameterGradients {
  std::uint64_t compared = 0;   // groups of parameters
  std::uint64_t unknown = 0;    // groups with no gradient or several on one side
  std::uint32_t other = kNone;  // of those that differ the parameter nearest to the loss; kNone: none does
  std::string said;             // about it, behind its name
};

/// Of each parameter that both sides have as one. Nothing is compared where one side records none, or several
/// micro-batches. `drift`: what an update before these steps has made of rounding.
ParameterGradients compare_parameter_gradients(const Implementation& ours, const Implementation& theirs,
                                               const ParameterMap& parameters, double drift);

}  // namespace msprobe::diagnosis
