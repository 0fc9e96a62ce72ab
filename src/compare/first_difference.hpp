// SPDX-License-Identifier: Apache-2.0
// `msprobe compare -da`: all ranks of a step compared, and the entries where the two runs part first.
#pragma once

#include "compare/analysis/difference_report.hpp"
#include "compare/compare.hpp"

namespace msprobe::compare {

/// Needs folders with ranks on both sides (UsageError otherwise). A pair of ranks that fails is told in its
/// place and does not stop the others.
DifferenceReport find_first_difference(const CompareOptions& options, Progress* progress);

/// Is this a pair of files or of single ranks, which have no step to search?
bool is_single_pair(const CompareOptions& options);

}  // namespace msprobe::compare
