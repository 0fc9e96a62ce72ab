// SPDX-License-Identifier: Apache-2.0
// Fuzzy match (spec/compare.md 5.4): rows of one name but for the call number, in order of execution.
#pragma once

#include <cstdint>
#include <vector>

#include "compare/matching/matching.hpp"

namespace msprobe::compare {

/// A key that equals nothing.
inline constexpr std::uint32_t kNoKey = UINT32_MAX;

/// Two queues are filled in step, one row of each side at a time. A row that comes in is paired with the
/// oldest waiting row of the other side that has its key (the target's newest row is tried first), and both
/// queues are cut behind the pair; what was cut off has no partner. Gives a pair for each target row, in
/// order; without `keep_surplus` none for rows behind the end of the golden side, as in the Python tool.
/// Linear in the number of rows; keys are small numbers.
std::vector<Pair> pair_in_step(const std::vector<std::uint32_t>& target_keys,
                               const std::vector<std::uint32_t>& golden_keys, bool keep_surplus);

}  // namespace msprobe::compare
