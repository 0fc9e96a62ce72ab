// SPDX-License-Identifier: Apache-2.0
// The section `acc_check` (8.x: `run_ut`) of a config.json.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "dump/entry.hpp"
#include "precheck/calls/plan.hpp"

namespace msprobe::precheck {

struct CheckConfig {
  CallLists lists;
  std::string error_data_path;        // empty: not said
  std::vector<std::string> warnings;  // keys that have no meaning here
};

/// Names of operations, as white and black lists have them; `where` and `key` stand before what is wrong.
/// FormatError.
void read_operation_names(const dump::Entry& entry, dump::Entry::Index list, std::string_view key,
                          const std::string& where, std::set<std::string, std::less<>>& into);

/// `section` is looked for first, the other name second. IoError; FormatError naming the file for what is
/// wrong in it, names that are no operations, and a folder that is not there.
CheckConfig read_check_config(const std::string& path, std::string_view section);

}  // namespace msprobe::precheck
