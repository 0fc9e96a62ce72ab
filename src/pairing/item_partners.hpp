// SPDX-License-Identifier: Apache-2.0
// Pairs the items of paired entries.
#pragma once

#include <cstdint>
#include <vector>

#include "dump/side.hpp"
#include "pairing/alignment.hpp"

namespace msprobe::pairing {

/// The golden item for each item of the target, or kNone: items of paired entries that have the same place.
std::vector<std::uint32_t> pair_items(const dump::Side& target, const dump::Side& golden,
                                      const Alignment& alignment);

}  // namespace msprobe::pairing
