// SPDX-License-Identifier: Apache-2.0
// Trainings that write their messages and tensors to a folder that this machine shares with them.
#pragma once

#include <string>

#include "precheck/acc_check/online_stream.hpp"
#include "precheck/standards/standards.hpp"

namespace msprobe::precheck {

/// Has a training written calls to the folder, or begun to?
bool has_calls(const std::string& folder);

/// Judges what comes into the folder until each training has ended that has begun; what was judged is
/// removed. IoError, FormatError; at an interruption it tells what it has found, and throws Interrupted.
OnlineCounts judge_folder(const std::string& folder, const OnlineSettings& settings,
                          const Standards& standards, bool color);

}  // namespace msprobe::precheck
