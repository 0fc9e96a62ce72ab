// SPDX-License-Identifier: Apache-2.0
// `msprobe bisect`: starts the Python package (python/msprobe/bisect.py), which records two trainings and
// compares them.
#pragma once

#include <string>
#include <vector>

#include "support/command.hpp"

namespace msprobe::bisect {

/// The command's name and options, for help and completion.
MadeCommand make_command();

/// True if these words are `bisect ...` and no request for help. They hold two command lines, so the
/// program's own parser does not read them.
bool takes(const std::vector<std::string>& words);

/// Replaces this program by Python. Throws UsageError if no Python with the package is found.
[[noreturn]] void start(const std::vector<std::string>& words);

}  // namespace msprobe::bisect
