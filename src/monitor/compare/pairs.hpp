// SPDX-License-Identifier: Apache-2.0
// Pairs the ranks and tensors of two runs' monitors.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "monitor/input/tracks.hpp"
#include "monitor/input/tree.hpp"

namespace msprobe {
class Progress;
}

namespace msprobe::monitor {

/// The tracks of a rank in both runs; a track without a partner is paired with nothing.
struct TrackPairs {
  std::int64_t rank = 0;  // of the first run
  bool first_layout = true;
  Tracks a;
  Tracks b;
  std::vector<std::pair<std::optional<std::size_t>, std::optional<std::size_t>>>
      pairs;  // in the order of `a`
};

/// A rank that only one run has, with the tensors of one of its groups of files.
struct LoneRank {
  std::int64_t rank = 0;
  Tracks tracks;
};

/// The places of equal numbers in two ascending lists, as pairs.
std::vector<std::pair<std::size_t, std::size_t>> common_steps(const std::vector<std::int64_t>& a,
                                                              const std::vector<std::int64_t>& b);

/// Pairs the ranks and tracks of two runs. Ranks pair by number, or because there is one on each side. Tracks
/// pair by quantity, stage, name and micro step; the remaining ones by name without the parts that wrappers
/// add. `visit` gets one group of files after the other, each loaded as a whole; with a single run every pair
/// has one member. `visit_alone` gets the ranks without a partner; the result has a sentence about each.
std::vector<std::string> visit_pairs(const MonitorTree& a, const MonitorTree* b, const TakesStatistic& takes,
                                     Progress* progress, const std::function<void(TrackPairs&)>& visit,
                                     const std::function<void(const LoneRank&)>& visit_alone);

}  // namespace msprobe::monitor
