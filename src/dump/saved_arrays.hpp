// SPDX-License-Identifier: Apache-2.0
// Trees of arrays that were saved one by one: DIR/data/TAG/step0/rank0/[micro_step0/]*.npy
// (spec/compare.md 12.3).
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

namespace msprobe::dump {

/// step, rank, micro step, id
using SavedKey = std::array<std::int64_t, 4>;
/// The files of one tag.
using SavedArrays = std::map<SavedKey, std::string>;

struct SavedSearch {
  std::map<std::string, SavedArrays> tags;
  std::string problem;      // why they are not all of them, in one line; `tags` is empty then
  bool unreadable = false;  // the system refused
};

/// The arrays by tag; none if there is no folder `data`. Of files with equal keys the last by name counts.
/// Each folder is listed once.
SavedSearch find_saved_arrays(const std::string& root);

}  // namespace msprobe::dump
