// SPDX-License-Identifier: Apache-2.0
// Finds where two implementations stop agreeing: the calls of both between the last contents that are the
// same and the first that should be the same but differ.
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
  std::uint32_t agrees = pairing::kNone;  // the last content that agrees and that the calls take
  std::uint32_t differs = pairing::kNone;
  std::uint32_t golden_differs = pairing::kNone;
  double error = NAN;  // of `differs`; NaN where it is not known
};

/// Finds nothing if every content that differs leads to one that agrees or to none. It finds no loss that
/// differs in size or within rounding once the output of the last call with a parameter agrees, because two
/// ways to compute a loss may meet nowhere.
std::optional<Stretch> find_stretch(const ContentFlow& target, const ContentFlow& golden,
                                    const ParameterMap& parameters, const Meetings& meetings);

}  // namespace msprobe::diagnosis
