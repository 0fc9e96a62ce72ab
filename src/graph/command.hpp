// SPDX-License-Identifier: Apache-2.0
// The command `graph_visualize`.
#pragma once

#include <memory>

#include "support/command.hpp"

namespace msprobe::graph {

std::unique_ptr<Command> make_command();

}  // namespace msprobe::graph
