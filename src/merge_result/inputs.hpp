// SPDX-License-Identifier: Apache-2.0
// The results of single ranks in a folder.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace msprobe::merge_result {

struct RankFiles {
  std::int64_t rank = 0;
  std::string time;  // of its name
  bool workbook = false;
  std::vector<std::string> paths;  // several where csv was cut into parts, in order
};

struct Inputs {
  std::vector<RankFiles> ranks;  // by number
  std::vector<std::string> warnings;
};

/// Of several results of one rank the newest is taken, and csv of two of the same time. Files of other names
/// are told in the warnings. IoError if the folder cannot be listed; FormatError for fewer than two ranks.
Inputs find_inputs(const std::string& folder);

}  // namespace msprobe::merge_result
