// SPDX-License-Identifier: Apache-2.0
// Which items of paired entries belong together.
#pragma once

#include <cstdint>
#include <vector>

#include "dump/side.hpp"
#include "pairing/alignment.hpp"

namespace msprobe::pairing {

/// The reference's item for each item under test, or kNone: items of paired entries that stand at one place.
std::vector<std::uint32_t> pair_items(const dump::Side& target, const dump::Side& golden,
                                      const Alignment& alignment);

}  // namespace msprobe::pairing
