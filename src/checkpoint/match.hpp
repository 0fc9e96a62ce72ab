// SPDX-License-Identifier: Apache-2.0
// Which parameters of two checkpoints are the same ones, whatever their projects call them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/name_map.hpp"

namespace msprobe::checkpoint {

struct Pairing {
  struct Pair {
    std::string name;  // the first checkpoint's name for it, mapped where a map was needed
    Entry first;
    Entry second;
  };
  std::vector<Pair> pairs;  // in model order
  std::vector<std::string> only_first;
  std::vector<std::string> only_second;
  std::vector<std::string> remarks;  // which prefix was dropped, which side was mapped
};

/// Takes the entries out of both checkpoints. Prefixes that wrappers leave (`model.`, `module.`) and the map
/// are tried on each side, and what makes the most names match is used.
Pairing pair_up(Checkpoint first, Checkpoint second, const NameMap& map);

}  // namespace msprobe::checkpoint
