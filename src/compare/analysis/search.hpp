// SPDX-License-Identifier: Apache-2.0
// From what differs on every rank to the entries where the two runs first diverge.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "compare/analysis/rank_differences.hpp"
#include "compare/imports.hpp"

namespace msprobe::compare {

enum class Phase : std::uint8_t { none, before, during, after };

struct FirstDifference {
  Phase phase = Phase::none;
  struct Place {
    std::size_t rank = 0;  // index
    const FoundEntry* entry = nullptr;
    bool communication = false;
  };
  std::vector<Place> places;  // by rank
  /// Ranks that talk to each other recorded different numbers of calls, or contradict each other.
  std::string doubt;
};

/// Calls are matched by their exact group, or by sender, receiver and tag; of what differs, the entries at
/// the earliest point of the whole step are named. Linear in calls and the sizes of the groups that are
/// named.
FirstDifference search_first_difference(const std::vector<RankDifferences>& ranks, const Rules& rules);

}  // namespace msprobe::compare
