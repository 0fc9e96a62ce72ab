// SPDX-License-Identifier: Apache-2.0
// The configuration of merge_result: the rows to take, and the columns.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace msprobe::merge_result {

struct MergeConfig {
  std::vector<std::string> apis;     // a row is taken if its name begins with one of these and a dot
  std::vector<std::string> indices;  // columns; empty: all metrics of the results
};

/// Throws FormatError with the file and the line for anything but the two lists of names.
MergeConfig read_config(const std::string& path);
MergeConfig parse_config(std::string_view text, const std::string& file);

}  // namespace msprobe::merge_result
