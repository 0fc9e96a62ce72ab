// SPDX-License-Identifier: Apache-2.0
// Whether two nodes may be partners by their arguments and results, as releases 8.x have it
// (docs/rules.md, "The index of releases 8.x").
#pragma once

#include "graph/data/node_source.hpp"

namespace msprobe::graph {

/// As many on both sides, of the same types and shapes in their order; `shapes_only`: of the same shapes, as
/// far as both sides have some.
bool same_arguments(const NodeData& target, const NodeData& golden, bool shapes_only);

}  // namespace msprobe::graph
