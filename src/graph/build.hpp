// SPDX-License-Identifier: Apache-2.0
// Builds the graphs of a dump, or of two dumps, for the viewer.
#pragma once

#include "graph/job.hpp"

namespace msprobe::graph {

/// A rank that cannot be read is a problem, and the others are written. Throws UsageError, IoError,
/// FormatError; every file that is there then is whole.
GraphResult build_graph(const GraphOptions& options, const GraphProgress& progress = {});

}  // namespace msprobe::graph
