// SPDX-License-Identifier: Apache-2.0
// From the command line to one command to an exit status.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace msprobe {

inline constexpr int kClean = 0;
inline constexpr int kFindings = 1;  // done, and found what was asked for
inline constexpr int kFailure = 2;
inline constexpr int kInterrupted = 130;

/// Does what the words after the program's name ask for, and returns the exit status. Throws what commands
/// throw. A process of a job that is not its root runs commands that share their work, and nothing else.
int run_program(const std::vector<std::string>& arguments);

/// Tells the user what `body` throws, and makes an exit status of it.
int report_failures(const std::function<int()>& body);

}  // namespace msprobe
