// SPDX-License-Identifier: Apache-2.0
// What a comparison adds to the item of a node under test (spec/graph-visualize.md 5, 7).
#pragma once

#include <cstddef>
#include <string>

#include "comparison/result/result.hpp"

namespace msprobe::graph {

/// Members of a JSON object, all of them texts, without its braces. `blank_surplus`: a row without partner
/// has blanks for numbers, and infinite differences end with a TAB.
std::string result_members(const compare::RankResult& result, std::size_t row, bool python_texts);

}  // namespace msprobe::graph
