// SPDX-License-Identifier: Apache-2.0
// How bad NaN, Inf and jumps of the norm in a node's data are (docs/rules.md, "Overflow levels").
#pragma once

#include <string_view>

#include "dump/entry.hpp"
#include "graph/data/item_texts.hpp"

namespace msprobe::graph {

/// `medium`, `high` or `critical`; empty if there is no overflow.
std::string_view overflow_level(std::string_view node, const dump::Entry& entry, const DataOptions& options);

}  // namespace msprobe::graph
