// SPDX-License-Identifier: Apache-2.0
// Finds the results of single ranks in a folder.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace msprobe::merge_result {

struct RankFiles {
  std::int64_t rank = 0;
  std::string time;  // in the file's name
  bool workbook = false;
  std::vector<std::string> paths;  // several if csv was split into parts, in order
};

struct MergeInputs {
  std::vector<RankFiles> ranks;  // by number
  std::vector<std::string> warnings;
};

/// If a rank has several results, takes the newest; of two with the same time, takes the csv. Warns about
/// files with other names. Throws IoError if the folder cannot be listed, and FormatError for fewer than two
/// ranks.
MergeInputs find_inputs(const std::string& folder);

}  // namespace msprobe::merge_result
