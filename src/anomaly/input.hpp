// SPDX-License-Identifier: Apache-2.0
// Finds the ranks and steps that an input path names.
#pragma once

#include <string>
#include <vector>

#include "anomaly/search.hpp"

namespace msprobe::anomaly {

struct StepInput {
  std::string label;             // "step3"; empty unless the input is a dump root
  std::vector<RankInput> ranks;  // by number; not read yet
};

/// Uses dump::discover(). `rank` and a single `proc…` count as rank 0, and leading zeros are ignored
/// (`rank007`): the Python tool's nan_analyze compares numbers, unlike its compare. `local`: the path exists
/// on the disks of several machines. IoError, FormatError.
std::vector<StepInput> resolve_input(const std::string& path, bool local = false);

}  // namespace msprobe::anomaly
