// SPDX-License-Identifier: Apache-2.0
// The section `acc_check` (8.x: `run_ut`) of a config.json.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "precheck/calls/plan.hpp"

namespace msprobe::precheck {

struct CheckConfig {
  CallLists lists;
  std::string error_data_path;        // empty: not said
  std::vector<std::string> warnings;  // keys that have no meaning here
};

/// `section` is looked for first, the other name second. IoError; FormatError naming the file for what is
/// wrong in it, names that are no operations, and a folder that is not there.
CheckConfig read_check_config(const std::string& path, std::string_view section);

}  // namespace msprobe::precheck
