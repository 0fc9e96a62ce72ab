// SPDX-License-Identifier: Apache-2.0
// Two dumps as they were recorded: each operation of each is judged by the reference, and both are laid side
// by side.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "precheck/acc_check/check.hpp"
#include "precheck/acc_check/sides.hpp"

namespace msprobe::precheck {

struct AgainstOptions {
  CheckOptions check;      // of A; `dump_json` is its dump
  std::string other_json;  // of B
  std::string folder;      // for the results; those of each side go to `A` and `B` in it
  std::string time;        // in the names of files
  ResultStyle style;
  std::string error_data;  // as for check_calls(), followed by `/A` or `/B`
};

struct AgainstResult {
  SidesResult sides;
  std::array<CheckSummary, 2> summaries;
  std::array<Coverage, 2> coverage;  // of the operations of each side
  std::vector<std::string> files;
};

/// Throws Error if a dump cannot be read or nothing can be called, IoError where files cannot be written;
/// Interrupted.
AgainstResult check_against(const AgainstOptions& options, const Standards& standards, Progress* progress);

}  // namespace msprobe::precheck
