// SPDX-License-Identifier: Apache-2.0
// Where two implementations stop to agree: what both compute between the last contents that are the same and
// the first that should be.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "diagnosis/content_flow.hpp"
#include "diagnosis/meeting_points.hpp"

namespace msprobe::diagnosis {

struct Stretch {
  std::vector<std::uint32_t> calls;  // of the side under test, in the order of execution; may be empty
  std::vector<std::uint32_t> golden_calls;
  // Contents:
  std::uint32_t agrees = kNone;  // the last that agrees and that they take
  std::uint32_t differs = kNone;
  std::uint32_t golden_differs = kNone;
  double error = NAN;  // there; NaN where it is not known
};

/// Nothing where whatever differs leads to what agrees or to nothing, and where nothing is known to be the
/// same behind the last parameter: two ways to compute a loss may meet nowhere.
std::optional<Stretch> find_stretch(const ContentFlow& target, const ContentFlow& golden,
                                    const ParameterMap& parameters, const Meetings& meetings);

}  // namespace msprobe::diagnosis
