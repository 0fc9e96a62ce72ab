// SPDX-License-Identifier: Apache-2.0
// Checks whether one side of a pair is the other side, rounded to the steps of a quantized format.
#pragma once

#include <cstdint>

#include "checkpoint/metrics.hpp"
#include "checkpoint/parameter.hpp"

namespace msprobe::checkpoint {

struct StepCheck {
  bool tried = false;        // one of them has steps
  std::uint64_t beyond = 0;  // elements further apart than half a step of either side and rounding of scales
  std::int64_t first = -1;
  double farthest = 0;  // in half steps, of those whose step is not 0
  std::int64_t farthest_at = -1;
  double farthest_of_chunk = 0;  // in the widest half step of 256 elements, where scales are searched for
  bool as_searched = false;      // elements beyond are those that a search for scales leaves
  bool says_nothing = false;     // for most elements that differ, either side could be 0
  bool holds() const { return tried && beyond == 0 && !says_nothing; }
  /// True if one side is made of the other, as far as steps show.
  bool explains() const { return holds() || as_searched; }
};

/// The parameters have one shape. Throws FormatError or IoError if a side cannot be read.
StepCheck check_steps(const Parameter& first, const Parameter& second, const MeasureOptions& options = {});

}  // namespace msprobe::checkpoint
