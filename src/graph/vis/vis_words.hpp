// SPDX-License-Identifier: Apache-2.0
// What a .vis file tells the viewer of its colours and columns (docs/formats.md, ".vis files").
#pragma once

#include <string>

#include "graph/config.hpp"
#include "support/json_writer.hpp"

namespace msprobe::graph {

/// The ranges of the index that colours stand for.
void put_vis_colors(JsonWriter& json, ComparedBy task);
/// JSON: what columns mean.
std::string vis_tool_tip(ComparedBy task);

}  // namespace msprobe::graph
