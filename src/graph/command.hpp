// SPDX-License-Identifier: Apache-2.0
// The commands `graph_visualize` and `graph`.
#pragma once

#include <memory>

#include "support/command.hpp"

namespace msprobe::graph {

/// `msprobe graph_visualize`, the name of releases 26.x.
std::unique_ptr<Command> make_graph_visualize();
/// `msprobe graph`, the name of releases 8.x for the same.
std::unique_ptr<Command> make_graph();

}  // namespace msprobe::graph
