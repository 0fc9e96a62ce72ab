// SPDX-License-Identifier: Apache-2.0
// Which ranks of two dumps belong together.
#pragma once

#include <string>
#include <vector>

#include "dump/tree.hpp"

namespace msprobe::compare {

struct RankPair {
  std::string step;
  dump::RankDump target;
  dump::RankDump golden;
};

struct RankPairs {
  std::vector<RankPair> pairs;
  std::vector<std::string> one_sided;  // "step0/rank3: only in the target", …
  std::vector<std::string> remarks;    // on how ranks were paired, where that needs a word
};

/// Finds the ranks of both sides and pairs them: by number; by position where no number is common, or always
/// with `by_position`. UsageError if the two are not of the same kind, FormatError if they have no step in
/// common.
RankPairs pair_ranks(const dump::Tree& target, const dump::Tree& golden, bool by_position);

}  // namespace msprobe::compare
