// SPDX-License-Identifier: Apache-2.0
// Compares trees of single arrays, DIR/data/TAG/step0/rank0/[micro_step0/]*.npy (spec/compare.md 12.3).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "compare/reports/row_list.hpp"
#include "compare/single_save/traits.hpp"

namespace msprobe {
class Progress;
}

namespace msprobe::compare {

/// step, rank, micro step, id
using SavedKey = std::array<std::int64_t, 4>;
/// The files of one tag.
using SavedArrays = std::map<SavedKey, std::string>;

/// Are there arrays below DIR/data? Never throws.
bool is_single_save(const std::string& root);

/// The arrays by tag. Of files with equal keys the last by name counts. IoError if a folder cannot be listed.
std::map<std::string, SavedArrays> find_saved_arrays(const std::string& root);

/// One row for each key that both sides have; of arrays of different shapes the common part is compared.
/// Files that cannot be read are rows that say so, or left out with a warning.
RowList compare_saved(const SavedArrays& target, const SavedArrays& golden, const SavedTraits& traits,
                      Progress* progress);

/// "step 0 rank 1 micro step 0 id 3"
std::string saved_name(const SavedKey& key);

}  // namespace msprobe::compare
