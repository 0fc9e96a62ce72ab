// SPDX-License-Identifier: Apache-2.0
// Which ranks of which steps an input path names.
#pragma once

#include <string>
#include <vector>

#include "anomaly/search.hpp"

namespace msprobe::anomaly {

struct StepInput {
  std::string label;  // "step3"; empty unless the input is a dump root
  std::string directory;
  std::vector<RankInput> ranks;  // by number, not read yet
};

/// Takes the folder of a step (whose children `rank`, `rank12`, `rank007` are the ranks, or a sole `proc…`),
/// the folder of a rank, a dump.json, or a dump root with step folders. `python`: only the folder of a step,
/// and one without ranks is no error. IoError, FormatError.
std::vector<StepInput> resolve_input(const std::string& path, bool python);

}  // namespace msprobe::anomaly
