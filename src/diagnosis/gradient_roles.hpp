// SPDX-License-Identifier: Apache-2.0
// Which gradient that a call gives belongs to which, where two frameworks give them in another order.
#pragma once

#include <cstdint>
#include <vector>

#include "dump/side.hpp"

namespace msprobe::diagnosis {

/// PyTorch gives the gradients of a call in the order of its graph, MindSpore and MSAdapter in that of the
/// arguments, those that nobody needs included.
bool gives_gradients_otherwise(const dump::Side& target, const dump::Side& golden);

/// For the outputs of a backward entry, in their order, their partners, or kNone: by their shapes, and those
/// of one shape in their order. Without a partner of its shape a gradient has none: there the frameworks
/// differentiate other things. Empty where all agree as they stand, and for entries that are no backward.
std::vector<std::uint32_t> gradients_by_role(const dump::Side& target, const dump::Api& ours,
                                             const dump::Side& golden, const dump::Api& theirs);

}  // namespace msprobe::diagnosis
