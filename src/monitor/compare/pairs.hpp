// SPDX-License-Identifier: Apache-2.0
// What of two runs' monitors belongs together.
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

/// The tracks of a rank in both runs; without a partner: nothing.
struct TrackPairs {
  std::int64_t rank = 0;  // of the first run
  bool first_layout = true;
  Tracks a;
  Tracks b;
  std::vector<std::pair<std::optional<std::size_t>, std::optional<std::size_t>>>
      pairs;  // in the order of `a`
};

/// A rank of one run, with the tensors of one of its groups of files.
struct LoneRank {
  std::int64_t rank = 0;
  Tracks tracks;
};

/// Which places of two ascending lists hold the same number.
std::vector<std::pair<std::size_t, std::size_t>> common_steps(const std::vector<std::int64_t>& a,
                                                              const std::vector<std::int64_t>& b);

/// Ranks pair by number, or because there is one on each side; tracks by quantity, stage, name and micro
/// step, and what finds none so by its name without what wrappers put into it. `visit` gets one group of
/// files after the other, in memory together; one run alone has pairs of nothing. `visit_alone` gets the
/// ranks without a partner, about which it gives sentences.
std::vector<std::string> visit_pairs(const Tree& a, const Tree* b, const TakesStatistic& takes,
                                     Progress* progress, const std::function<void(TrackPairs&)>& visit,
                                     const std::function<void(const LoneRank&)>& visit_alone);

}  // namespace msprobe::monitor
