// SPDX-License-Identifier: Apache-2.0
// The values that calls leave in memory that they change in place, as in an average of the weights. No later
// call of the step may read them.
#pragma once

#include <cstdint>
#include <vector>

#include "diagnosis/walk.hpp"

namespace msprobe::diagnosis {

struct LeftValue {
  std::uint32_t call =
      pairing::kNone;  // of the target, the last one that changes it; kNone: nothing is known
  double error = 0;
  double before = 0;   // the error of what the calls take
  bool other = false;  // the error is larger than those, and rounding, explain
};

/// Compares the values that unpaired calls of both sides, which start from the same tensor, leave in its
/// place. Tensors that a call of the step made, and gradients, do not count: what takes them is judged.
LeftValue left_value(const Walk& walk, const std::vector<std::uint32_t>& calls,
                     const std::vector<std::uint32_t>& golden_calls);

}  // namespace msprobe::diagnosis
