// SPDX-License-Identifier: Apache-2.0
// Finds parameters that differ because one side became a copy of a parameter that is equal on both sides: a
// head tied to the embedding, a copied layer.
#pragma once

#include <span>
#include <vector>

#include "checkpoint/compare.hpp"
#include "checkpoint/match.hpp"

namespace msprobe::checkpoint {

/// Fills in relations that are still empty. Hashes of contents cannot find these, because parameters that are
/// equal on both sides are not hashed. `results` belong to `pairs`, in their order.
void relate_to_equal(std::span<const Pairing::ParameterPair> pairs, std::vector<ParameterResult>& results);

}  // namespace msprobe::checkpoint
