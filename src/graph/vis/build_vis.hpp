// SPDX-License-Identifier: Apache-2.0
// The models of a dump, or of one beside another, as the .vis files of releases 8.x: one for each rank.
#pragma once

#include "graph/build.hpp"

namespace msprobe::graph {

/// A rank that cannot be read is a problem, and the others are written. Throws UsageError, IoError,
/// FormatError; every file that is there is whole.
GraphResult build_vis(const GraphOptions& options, bool whole_stacks, const GraphProgress& progress = {});

}  // namespace msprobe::graph
