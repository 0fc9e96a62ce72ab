// SPDX-License-Identifier: Apache-2.0
// Where two implementations of one model compute the same, known by what is in a tensor and not by names.
#pragma once

#include <cstdint>
#include <vector>

#include "diagnosis/content_flow.hpp"
#include "diagnosis/parameter_map.hpp"

namespace msprobe::diagnosis {

/// How far the same tensor of two implementations may be apart: single elements, and norms.
struct Allowance {
  double element = 0;
  double norm = 0;
};

/// Contents of both sides that are the same within rounding, whoever computed them. A part that a rank has
/// is the same if the whole is.
struct Meetings {
  std::vector<std::uint32_t> golden_of;  // by content: of several the one in an order that both go through
  std::vector<double> error;             // as measuring::Measure has it; NaN without partner
  std::vector<bool> golden_meets;        // by golden's content
  std::vector<double> golden_error;      // likewise, the smallest
};

/// Those with as many elements and the same statistics. Where these are not exact, calls that take them with
/// a parameter have to take the same one. O(n log n) for n contents.
Meetings meet(const ContentFlow& target, const ContentFlow& golden, const ParameterMap& parameters,
              const Allowance& allowance);

/// Do calls take both with the same parameter?
bool are_taken_with_one_parameter(const ContentFlow& target, std::uint32_t ours, const ContentFlow& golden,
                                  std::uint32_t theirs, const ParameterMap& parameters);

/// Nearer than this may be the same with an error; unrelated tensors of one shape are further apart. Chosen:
/// norms and extremes of unrelated ones scatter by a tenth, and there are hundreds of pairs.
inline constexpr double kNearby = 0.05;
inline constexpr double kNearbyNorm = 0.02;

/// Two contents that are no farther apart than an error makes of one; unrelated ones of one shape are.
struct NearPair {
  std::uint32_t target = 0;
  std::uint32_t golden = 0;
  double error = 0;
};

/// Of two lists of contents those that are near each other, in an order that both go through.
std::vector<NearPair> near_pairs(const ContentFlow& target, const std::vector<std::uint32_t>& ours,
                                 const ContentFlow& golden, const std::vector<std::uint32_t>& theirs);

}  // namespace msprobe::diagnosis
