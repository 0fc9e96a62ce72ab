// SPDX-License-Identifier: Apache-2.0
// Compares arrays that were saved one by one (spec/compare.md 12.3).
#pragma once

#include <string>

#include "compare/lists/list_rows.hpp"
#include "compare/single_save/traits.hpp"
#include "dump/saved_arrays.hpp"

namespace msprobe {
class Progress;
}

namespace msprobe::compare {

using dump::SavedArrays;
using dump::SavedKey;

/// One row for each key that both sides have; of arrays of different shapes the common part is compared.
/// Files that cannot be read are rows that say so, or left out with a warning.
RowList compare_saved(const SavedArrays& target, const SavedArrays& golden, const SavedTraits& traits,
                      Progress* progress);

/// "step 0 rank 1 micro step 0 id 3"
std::string saved_name(const SavedKey& key);

}  // namespace msprobe::compare
