// SPDX-License-Identifier: Apache-2.0
// Pairs the items of two paired nodes for the comparison.
#pragma once

#include <cstdint>
#include <vector>

#include "verdict/result.hpp"

namespace msprobe::graph {

/// The golden entry if the partner of an entry's node has no data.
inline constexpr std::uint32_t kNoData = UINT32_MAX - 1;

/// Adds a row to the result for each item under test, in their order. `golden_of`: the golden entry of each
/// entry; kUnmatched for an entry whose node has no partner: its rows have no meaning.
///
/// In each section, items with the same name pair first. The remaining items, except keyword arguments, pair
/// in their order.
void pair_items(verdict::RankResult& result, const std::vector<std::uint32_t>& golden_of);

}  // namespace msprobe::graph
