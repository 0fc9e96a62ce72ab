// SPDX-License-Identifier: Apache-2.0
// The texts by which a .vis file explains its colours and columns to the viewer (docs/formats.md, ".vis
// files").
#pragma once

#include <string>

#include "graph/config.hpp"
#include "support/json_writer.hpp"

namespace msprobe::graph {

/// Writes the ranges of the index that each colour represents.
void put_vis_colors(JsonWriter& json, ComparedBy task);
/// The meanings of the columns, as JSON.
std::string vis_tool_tip(ComparedBy task);

}  // namespace msprobe::graph
