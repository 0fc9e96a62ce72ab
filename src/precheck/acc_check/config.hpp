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
  std::string error_data_path;        // empty: the file does not say
  std::vector<std::string> warnings;  // keys that have no meaning here
};

/// Reads names of operations, as in white and black lists; `where` and `key` begin an error message.
/// FormatError.
void read_operation_names(const dump::Entry& entry, dump::Entry::Index list, std::string_view key,
                          const std::string& where, std::set<std::string, std::less<>>& into);

/// Reads the section named `section`, or else the one with the other name. IoError; FormatError naming the
/// file for errors in it, names that are not operations, and a folder that does not exist.
CheckConfig read_check_config(const std::string& path, std::string_view section);

}  // namespace msprobe::precheck
