// SPDX-License-Identifier: Apache-2.0
// Parameters that differ, and have become the same as one that is equal on both sides: a head tied to the
// embedding, a layer that was copied.
#pragma once

#include <span>
#include <vector>

#include "checkpoint/compare.hpp"
#include "checkpoint/match.hpp"

namespace msprobe::checkpoint {

/// Fills in the relations of those that have none yet. Hashes of contents do not tell them: what is equal is
/// not hashed. The results are those of the pairs, in their order.
void relate_to_equal(std::span<const Pairing::Pair> pairs, std::vector<ParameterResult>& results);

}  // namespace msprobe::checkpoint
