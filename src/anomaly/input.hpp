// SPDX-License-Identifier: Apache-2.0
// Which ranks of which steps an input path names.
#pragma once

#include <string>
#include <vector>

#include "anomaly/search.hpp"

namespace msprobe::anomaly {

struct StepInput {
  std::string label;             // "step3"; empty unless the input is a dump root
  std::vector<RankInput> ranks;  // by number, not read yet
};

/// Takes what dump::discover() finds; `rank` and a sole `proc…` are rank 0, and leading zeros do not count
/// (`rank007`): the Python tool's nan_analyze goes by the number, other than its compare.
/// `local`: a path on the own disks of several machines. IoError, FormatError.
std::vector<StepInput> resolve_input(const std::string& path, bool local = false);

}  // namespace msprobe::anomaly
