// SPDX-License-Identifier: Apache-2.0
// The members that a comparison adds to the items of a node under test (docs/formats.md, "Item texts").
#pragma once

#include <cstddef>

#include "graph/data/item_texts.hpp"
#include "verdict/result.hpp"
#include "verdict/row_cells.hpp"

namespace msprobe::graph {

// The tool tips use the same names.
using verdict::kDifferenceNames;
using verdict::kMetricNames;
using verdict::kRelativeNames;

/// `python_texts`: a row without partner has blanks for numbers, and infinite differences end with a TAB.
TextMembers result_members(const verdict::RankResult& result, std::size_t row, bool python_texts);

}  // namespace msprobe::graph
