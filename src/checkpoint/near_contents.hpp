// SPDX-License-Identifier: Apache-2.0
// Quantized weights whose content stands under another name: no hash of their elements tells that.
#pragma once

#include <span>
#include <vector>

#include "checkpoint/compare.hpp"
#include "checkpoint/match.hpp"

namespace msprobe::checkpoint {

/// Fills in the relations of those that differ by more than the steps of their format and that have none yet.
/// The results are those of the pairs, in their order.
void relate_near_contents(std::span<const Pairing::Pair> pairs, std::vector<ParameterResult>& results);

}  // namespace msprobe::checkpoint
