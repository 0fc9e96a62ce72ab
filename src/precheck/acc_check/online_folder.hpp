// SPDX-License-Identifier: Apache-2.0
// Trainings that write their messages and tensors to a folder that this machine shares with them.
#pragma once

#include <string>

#include "precheck/acc_check/online_stream.hpp"
#include "precheck/standards/standards.hpp"

namespace msprobe::precheck {

/// Whether a training has written calls to the folder, or has begun to.
bool has_calls(const std::string& folder);

/// Judges the calls that come into the folder until every training that has begun has ended, and removes
/// judged files. IoError, FormatError; at an interruption it reports its findings, and throws Interrupted.
OnlineCounts judge_folder(const std::string& folder, const OnlineSettings& settings,
                          const Standards& standards, bool color);

}  // namespace msprobe::precheck
