// SPDX-License-Identifier: Apache-2.0
// Which items of two paired nodes are compared with each other.
#pragma once

#include <cstdint>
#include <vector>

#include "verdict/result.hpp"

namespace msprobe::graph {

/// Of an entry whose node has a partner without data.
inline constexpr std::uint32_t kNoData = UINT32_MAX - 1;

/// Gives the result a row for each item under test, in their order. `golden_of`: the partners of entries;
/// kUnmatched for those of nodes without partner, whose rows mean nothing.
///
/// In each section items pair that are called alike, then, in their order, what is left but for keyword
/// arguments.
void pair_items(verdict::RankResult& result, const std::vector<std::uint32_t>& golden_of);

}  // namespace msprobe::graph
