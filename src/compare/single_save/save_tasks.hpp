// SPDX-License-Identifier: Apache-2.0
// Trees of single arrays as a plan: one task for each tag.
#pragma once

#include <map>
#include <string>

#include "compare/single_save/traits.hpp"
#include "compare/task.hpp"
#include "dump/saved_arrays.hpp"

namespace msprobe::compare {

/// A tree, and what was found in it.
struct FoundSaves {
  std::string path;
  std::map<std::string, dump::SavedArrays> tags;
};

/// FormatError if the trees have no tag in common.
Plan plan_single_saves(const FoundSaves& target, const FoundSaves& golden, const SavedTraits& traits,
                       Progress* progress);

}  // namespace msprobe::compare
