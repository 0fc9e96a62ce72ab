// SPDX-License-Identifier: Apache-2.0
// What the viewer is told of a comparison: its colours and the words on them (spec/graph-visualize.md 8).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace msprobe::graph {

/// By what the two runs are compared.
enum class ComparedBy : std::uint8_t { statistics, md5, tensors, structure };

/// What the column `task` says.
std::string_view task_name(ComparedBy task);
/// JSON objects for the columns of these names.
std::string tool_tip_of(ComparedBy task);
std::string node_colors_of(ComparedBy task);

}  // namespace msprobe::graph
