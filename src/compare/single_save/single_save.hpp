// SPDX-License-Identifier: Apache-2.0
// Compares arrays that were saved one by one (docs/rules.md, "Other layouts").
#pragma once

#include <map>
#include <string>

#include "compare/lists/list_rows.hpp"
#include "compare/task.hpp"
#include "dump/look.hpp"

namespace msprobe::compare {

using dump::SavedArrays;
using dump::SavedKey;

/// A tree, and the arrays that were found in it.
struct FoundSaves {
  std::string path;
  std::map<std::string, SavedArrays> tags;
};

/// Makes one task for each tag. Throws FormatError if the trees have no tag in common.
TaskPlan plan_single_saves(const FoundSaves& target, const FoundSaves& golden, Progress* progress);

/// Makes one row for each key that both sides have. If the shapes differ, the common part is compared. A file
/// that cannot be read gives a row that says so.
RowList compare_saved(const SavedArrays& target, const SavedArrays& golden, Progress* progress);

}  // namespace msprobe::compare
