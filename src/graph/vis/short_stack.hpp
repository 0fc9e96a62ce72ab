// SPDX-License-Identifier: Apache-2.0
// Shortens call stacks as releases 8.x do unless the user asks for whole ones (-cs).
#pragma once

#include <string_view>

#include "dump/entry.hpp"

namespace msprobe::graph {

/// The line of a stack that releases 8.x show: for a module the first one that calls it by its name; for an
/// operation the one after the call of a wrapper (`...Template(`). kNone if they show all lines.
dump::Entry::Index line_that_counts(std::string_view node, const dump::Entry& stack);

}  // namespace msprobe::graph
