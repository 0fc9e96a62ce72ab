// SPDX-License-Identifier: Apache-2.0
// Finds the entries where the two runs first diverge, from the differences on every rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "compare/analysis/rank_differences.hpp"

namespace msprobe::compare {

enum class DifferencePhase : std::uint8_t { none, before, during, after };

struct FirstDifference {
  DifferencePhase phase = DifferencePhase::none;
  struct DifferencePlace {
    std::size_t rank = 0;  // index
    const FoundEntry* entry = nullptr;
    bool communication = false;
  };
  std::vector<DifferencePlace> places;  // by rank
  /// Says which ranks that talk to each other recorded different numbers of calls, or contradict each other.
  std::string doubt;
};

/// Matches calls by their exact group, or by sender, receiver and tag. Names the differing entries at the
/// earliest point of the whole step. Takes linear time in the number of calls and the sizes of the groups
/// that are named.
FirstDifference search_first_difference(const std::vector<RankDifferences>& ranks,
                                        const pairing::Rules& rules);

}  // namespace msprobe::compare
