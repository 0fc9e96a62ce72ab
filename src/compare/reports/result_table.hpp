// SPDX-License-Identifier: Apache-2.0
// A RankResult as the table that the writers take: the Python tool's columns in its order (spec/compare.md
// 10).
#pragma once

#include <memory>
#include <vector>

#include "compare/result/result.hpp"
#include "report/table.hpp"

namespace msprobe::compare {

/// The columns that say how far both sides are apart, in their order.
std::vector<std::string> metric_columns(Mode mode);

/// `result` must outlive the table.
std::unique_ptr<report::Table> result_table(const RankResult& result);

/// Several results under one header, with the columns Step (if there are several) and Rank in front. All must
/// have the same columns (UsageError otherwise). The results must outlive the table.
std::unique_ptr<report::Table> joined_table(const std::vector<const RankResult*>& results);

}  // namespace msprobe::compare
