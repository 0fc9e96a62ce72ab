// SPDX-License-Identifier: Apache-2.0
// Builds the graphs of a dump, or of two dumps, for the viewer.
#pragma once

#include <vector>

#include "graph/job.hpp"
#include "graph/merge/parallel_plan.hpp"

namespace msprobe::graph {

/// A rank that cannot be read is a problem, and the others are written. Throws UsageError, IoError,
/// FormatError; every file that is there then is whole.
GraphResult build_graph(const GraphOptions& options, const GraphProgress& progress = {});

/// Merges ranks into one model, for the viewer or as a dump. Throws UsageError, IoError, FormatError, and
/// then leaves no file.
GraphResult build_merged(const GraphOptions& options, const std::vector<ParallelPlan>& plans, bool as_json,
                         const GraphProgress& progress = {});

}  // namespace msprobe::graph
