// SPDX-License-Identifier: Apache-2.0
// One row of a static-graph comparison: numbers, messages, verdict.
#pragma once

#include <string>
#include <vector>

#include "compare/lists/list_rows.hpp"
#include "compare/static_graph/graph_files.hpp"

namespace msprobe::compare {

std::vector<std::string> graph_columns(measuring::Mode mode);

/// Either side may be null, not both.
ListedRow tensor_row(const GraphItem* target, const GraphItem* golden);
ListedRow statistics_row(const GraphItem* target, const GraphItem* golden);

}  // namespace msprobe::compare
