// SPDX-License-Identifier: Apache-2.0
// What a .vis file tells the viewer of its colours and columns (docs/formats.md, ".vis files").
#pragma once

#include <string>

#include "graph/config.hpp"

namespace msprobe::graph {

/// JSON: the ranges of the index that colours stand for.
std::string vis_colors(ComparedBy task);
/// JSON: what columns mean.
std::string vis_tool_tip(ComparedBy task);

}  // namespace msprobe::graph
