// SPDX-License-Identifier: Apache-2.0
// `msprobe bisect`: two trainings are recorded and compared by the Python package (python/msprobe/bisect.py),
// which this command starts.
#pragma once

#include <string>
#include <vector>

#include "support/command.hpp"

namespace msprobe::bisect {

/// What help and completion know of it.
MadeCommand make_command();

/// Are these words `bisect ...` and no request for help? They hold two command lines, so nobody else parses
/// them.
bool takes(const std::vector<std::string>& words);

/// Python takes the place of this program. UsageError if none that has the package is found.
[[noreturn]] void start(const std::vector<std::string>& words);

}  // namespace msprobe::bisect
