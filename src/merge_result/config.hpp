// SPDX-License-Identifier: Apache-2.0
// The configuration of merge_result: which rows, and which of their numbers.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace msprobe::merge_result {

struct Config {
  std::vector<std::string> apis;     // a row is taken if its name begins with one of them and a dot
  std::vector<std::string> indices;  // columns; empty: all metrics of the results
};

/// FormatError naming the file and the line for anything else than the two lists of names.
Config read_config(const std::string& path);
Config parse_config(std::string_view text, const std::string& file);

}  // namespace msprobe::merge_result
