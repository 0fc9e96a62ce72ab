// SPDX-License-Identifier: Apache-2.0
// Static-graph dumps of MindSpore as a plan: one task for each rank and step.
#pragma once

#include <string>

#include "compare/static_graph/graph_compare.hpp"
#include "compare/task.hpp"

namespace msprobe::compare {

/// FormatError if the dumps have no rank and step in common.
Plan plan_static_graphs(const FoundGraphs& target, const FoundGraphs& golden, const GraphSelection& selection,
                        const GraphTraits& traits, const MeasureTraits& measure, Progress* progress);

}  // namespace msprobe::compare
