// SPDX-License-Identifier: Apache-2.0
// Comparing one pair of ranks: each is loaded once, rows are paired, measured and judged.
#pragma once

#include <optional>
#include <string>

#include "compare/dump_tree/rank_pairs.hpp"
#include "compare/matching/match.hpp"
#include "compare/result/result.hpp"
#include "compare/rules/rules.hpp"

namespace msprobe {
class Progress;
}

namespace msprobe::compare {

struct RankOptions {
  bool stacks = true;
  std::string stack_json;  // empty: beside the dump.json
  MatchOptions match;
  std::optional<Backend> backend;  // training against inference, and what trained
  bool print_rows = false;         // one log line a row in tensor mode
  bool first_difference = false;   // only what -da looks at: no tensors, no verdicts
};

/// A mapping has been loaded. Throws what the readers throw, and FormatError for dumps that do not go
/// together (other task, nothing to compare).
RankResult compare_ranks(const RankPair& pair, const RankOptions& options, const RankTraits& traits,
                         const Rules& rules, Progress* progress);

}  // namespace msprobe::compare
