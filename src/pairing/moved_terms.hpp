// SPDX-License-Identifier: Apache-2.0
// Terms of a sum that the two sides compute in another order.
#pragma once

#include <cstdint>
#include <functional>

#include "dump/side.hpp"
#include "pairing/alignment.hpp"

namespace msprobe::pairing {

/// A pair is clearly nearer than another if the other's distance is this many times its own, or kLeast:
/// errors of rounding tell nothing.
inline constexpr double kClearly = 100;
inline constexpr double kLeast = 1e-6;

/// Calls of arithmetic with one tensor and numbers have neither a module nor another tensor to tell them
/// apart, so that the alignment pairs them in order. Pairs those anew, near their place, whose tensor and
/// numbers are those of another call. `counts`: whether a call of the target may
/// move. Returns whether any moved.
bool pair_moved_terms(const dump::Side& target, const dump::Side& golden,
                      const std::function<bool(std::uint32_t target_api)>& counts, Alignment& alignment);

}  // namespace msprobe::pairing
