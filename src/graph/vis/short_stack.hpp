// SPDX-License-Identifier: Apache-2.0
// Call stacks as releases 8.x show them unless the whole ones are asked for (-cs).
#pragma once

#include <string>
#include <string_view>

namespace msprobe::graph {

/// `stack` is a JSON list of lines. Of a module the first line that calls it by its name; of an operation the
/// line behind the one that calls a wrapper (`...Template(`). Without such a line the whole list.
std::string short_stack(std::string_view node, std::string_view stack);

}  // namespace msprobe::graph
