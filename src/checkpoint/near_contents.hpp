// SPDX-License-Identifier: Apache-2.0
// Finds quantized weights whose content is under another name. Their elements are near, not equal, so hashes
// fail.
#pragma once

#include <span>
#include <vector>

#include "checkpoint/compare.hpp"
#include "checkpoint/match.hpp"

namespace msprobe::checkpoint {

/// Fills in relations that are still empty, for pairs that differ by more than the steps of their format.
/// `results` belong to `pairs`, in their order.
void relate_near_contents(std::span<const Pairing::ParameterPair> pairs,
                          std::vector<ParameterResult>& results);

}  // namespace msprobe::checkpoint
