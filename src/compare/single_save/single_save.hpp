// SPDX-License-Identifier: Apache-2.0
// Compares arrays that were saved one by one (docs/rules.md, "Other layouts").
#pragma once

#include <map>
#include <string>

#include "compare/imports.hpp"
#include "compare/lists/list_rows.hpp"
#include "compare/task.hpp"
#include "dump/look.hpp"

namespace msprobe::compare {

using dump::SavedArrays;
using dump::SavedKey;

/// A tree, and what was found in it.
struct FoundSaves {
  std::string path;
  std::map<std::string, SavedArrays> tags;
};

/// One task for each tag; FormatError if the trees have none in common.
Plan plan_single_saves(const FoundSaves& target, const FoundSaves& golden, Progress* progress);

/// One row for each key that both sides have; of arrays of different shapes the common part is compared.
/// Files that cannot be read are rows that say so.
RowList compare_saved(const SavedArrays& target, const SavedArrays& golden, Progress* progress);

}  // namespace msprobe::compare
