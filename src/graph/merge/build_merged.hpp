// SPDX-License-Identifier: Apache-2.0
// Merges ranks into one model, for the viewer or as a dump.
#pragma once

#include <vector>

#include "graph/job.hpp"
#include "graph/merge/parallel_plan.hpp"

namespace msprobe::graph {

/// Throws UsageError, IoError, FormatError, and then leaves no file.
GraphResult build_merged(const GraphOptions& options, const std::vector<ParallelPlan>& plans, bool as_json,
                         const GraphProgress& progress = {});

}  // namespace msprobe::graph
