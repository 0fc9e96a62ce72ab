// SPDX-License-Identifier: Apache-2.0
// Compares the gradients of two implementations whose forward agrees: each content that both make has a
// gradient, and it should be the same.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "diagnosis/content_flow.hpp"
#include "diagnosis/meeting_points.hpp"

namespace msprobe::diagnosis {

struct GradientMeetings {
  std::uint64_t equal = 0;  // contents whose gradient is the same
  /// Calls, in the order of execution, that lead from the last content in that order whose gradient differs
  /// to those whose gradient is the same. Empty: none differs.
  std::vector<std::uint32_t> calls;
  std::uint32_t differs = pairing::kNone;  // that content
  std::uint32_t golden_differs = pairing::kNone;
  double error = 0;
};

/// Compares the gradients of the contents in `meetings`. In half types it compares only contents that calls
/// take with the same parameter. `drift`: the error that rounding grew to in the updates before these steps.
GradientMeetings meet_gradients(const ContentFlow& target, const ContentFlow& golden,
                                const ParameterMap& parameters, const Meetings& meetings, double drift);

}  // namespace msprobe::diagnosis
