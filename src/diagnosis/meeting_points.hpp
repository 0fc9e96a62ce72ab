// SPDX-License-Identifier: Apache-2.0
// Finds where two implementations of one model compute the same, by the contents of tensors and not by names.
#pragma once

#include <cstdint>
#include <vector>

#include "diagnosis/content_flow.hpp"
#include "diagnosis/limits.hpp"
#include "diagnosis/parameter_map.hpp"

namespace msprobe::diagnosis {

/// How far the same tensor of two implementations may be apart: single elements, and norms.
struct Allowance {
  double element = 0;
  double norm = 0;
};

/// Contents of both sides that are the same within rounding, whichever operation computed them. A part that a
/// rank holds is the same if the whole is.
struct Meetings {
  std::vector<std::uint32_t>
      golden_of;  // by content: its partner; of several, the one that keeps the order of both sides
  std::vector<double> error;         // as measuring::Measure defines it; NaN without a partner
  std::vector<bool> golden_meets;    // by golden's content
  std::vector<double> golden_error;  // by golden's content: the smallest error
};

/// Finds contents with the same number of elements and the same statistics. Where the statistics are not
/// exactly equal, calls that take them with a parameter must take the same parameter. O(n log n) for n
/// contents.
Meetings meet(const ContentFlow& target, const ContentFlow& golden, const ParameterMap& parameters,
              const Allowance& allowance);

/// Whether calls on both sides take the two contents with the same parameter.
bool are_taken_with_one_parameter(const ContentFlow& target, std::uint32_t ours, const ContentFlow& golden,
                                  std::uint32_t theirs, const ParameterMap& parameters);

/// Contents that are nearer than this may be the same tensor with an error; unrelated tensors of one shape
/// are further apart. Chosen: norms and extremes of unrelated tensors scatter by a tenth, and there are
/// hundreds of pairs.
inline constexpr double kNearby = 0.05;
inline constexpr double kNearbyNorm = kTrainedRoundingHalf;

/// Two contents that are near enough to be the same tensor with an error.
struct NearPair {
  std::uint32_t target = 0;
  std::uint32_t golden = 0;
  double error = 0;
};

/// The pairs from two lists of contents that are near each other, in an order that keeps the order of both
/// lists.
std::vector<NearPair> near_pairs(const ContentFlow& target, const std::vector<std::uint32_t>& ours,
                                 const ContentFlow& golden, const std::vector<std::uint32_t>& theirs);

}  // namespace msprobe::diagnosis
