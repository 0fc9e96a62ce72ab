// SPDX-License-Identifier: Apache-2.0
// Trainings that write their messages and tensors to a folder that this machine shares with them.
#pragma once

#include <cstddef>
#include <string>

#include "precheck/standards/standards.hpp"

namespace msprobe::precheck {

struct OnlineFolder {
  std::string folder;   // where they write
  std::string results;  // for the files of each
  std::string python;
  std::string device;  // of the references
  double time_limit = 0;
};

/// Operations of all trainings.
struct OnlineCounts {
  std::size_t passes = 0;
  std::size_t errors = 0;
  std::size_t warnings = 0;
  std::size_t skips = 0;
};

/// Judges what comes until each training has ended that has begun; what was judged is removed. IoError,
/// FormatError; at an interruption it tells what it has found, and throws Interrupted.
OnlineCounts judge_folder(const OnlineFolder& wanted, const Standards& standards, bool color);

}  // namespace msprobe::precheck
