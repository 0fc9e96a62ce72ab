// SPDX-License-Identifier: Apache-2.0
// Call stacks as releases 8.x show them unless the whole ones are asked for (-cs).
#pragma once

#include <string_view>

#include "dump/entry.hpp"

namespace msprobe::graph {

/// The one of a stack's lines that is shown: of a module the first that calls it by its name; of an operation
/// the one behind that which calls a wrapper (`...Template(`). kNone if all are.
dump::Entry::Index line_that_counts(std::string_view node, const dump::Entry& stack);

}  // namespace msprobe::graph
