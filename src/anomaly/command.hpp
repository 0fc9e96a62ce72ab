// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "support/command.hpp"

namespace msprobe::anomaly {

/// `msprobe nan_analyze`, the name of releases 8.x.
std::unique_ptr<Command> make_nan_analyze();
/// `msprobe overflow_check`, the name of releases 26.x for the same.
std::unique_ptr<Command> make_overflow_check();

}  // namespace msprobe::anomaly
