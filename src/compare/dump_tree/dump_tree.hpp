// SPDX-License-Identifier: Apache-2.0
// Dumps with a dump.json: files, ranks, steps, whole trees. One task for each pair of ranks.
#pragma once

#include "compare/dump_tree/rank.hpp"
#include "compare/task.hpp"
#include "dump/tree.hpp"

namespace msprobe::compare {

/// The arguments must outlive the plan. UsageError, FormatError as pair_ranks().
Plan plan_dump_trees(const dump::Tree& target, const dump::Tree& golden, const RankOptions& options,
                     const RankTraits& traits, const Rules& rules, Progress* progress);

}  // namespace msprobe::compare
