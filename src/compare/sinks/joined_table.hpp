// SPDX-License-Identifier: Apache-2.0
// The rows of several tasks under one header.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compare/result/rows.hpp"

namespace msprobe::compare {

struct JoinedPart {
  std::string step;
  std::string rank;
  std::shared_ptr<const Rows> rows;
};

/// With the columns Step (if any part has one) and Rank in front. All must have the same columns (UsageError
/// otherwise).
std::shared_ptr<const report::Table> joined_table(std::vector<JoinedPart> parts);

}  // namespace msprobe::compare
