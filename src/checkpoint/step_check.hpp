// SPDX-License-Identifier: Apache-2.0
// How a weight is related to one that was rounded to the steps of a quantized format, or that an adapter was
// added to: elements are not equal there, but near each other. A relation is claimed only if each element is
// as near as the format allows.
#pragma once

#include <cstdint>
#include <string>

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
StepCheck check_steps(const Parameter& first, const Parameter& second);

/// Returns "rows permuted: halves -> interleaved, 64 per head"; empty if no relation was found. Both have one
/// shape, or the second that of the first transposed, and one of them has steps. Reads both once, and once
/// more to prove a relation, permuted rows in bands of 64 MiB. `metrics` are those of the pair if the shapes
/// are the same. Throws FormatError or IoError if one cannot be read.
std::string find_near_relation(const Parameter& first, const Parameter& second, const PairMetrics& metrics);

}  // namespace msprobe::checkpoint
