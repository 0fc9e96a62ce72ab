// SPDX-License-Identifier: Apache-2.0
// Finds the parameters that two checkpoints have in common, whatever their projects call them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/name_map.hpp"

namespace msprobe::checkpoint {

struct Pairing {
  struct ParameterPair {
    std::string name;  // the first checkpoint's name for it, mapped where a map was needed
    CheckpointEntry first;
    CheckpointEntry second;
    std::optional<Parameter> surplus = {};  // rows of the vocabulary that one side alone has
  };
  /// A name that one side alone has, for a tensor that is compared under another name.
  struct Tied {
    std::string name;
    std::string kept;
    bool is_second = false;
    /// Without blocks if the file itself says that both names are one tensor; else both parameters, to be
    /// compared with each other.
    Parameter parameter;
    Parameter kept_parameter;
  };
  std::vector<ParameterPair> pairs;  // in model order
  std::vector<Tied> tied;
  /// A name that one side alone has, and that cannot be read there.
  struct Unreadable {
    std::string name;
    std::string problem;
  };
  std::vector<Unreadable> unreadable;
  std::vector<std::string> only_first;
  std::vector<std::string> only_second;
  /// The parameters of these names that are one stored tensor.
  std::vector<Parameter> lone_first;
  std::vector<Parameter> lone_second;
  bool map_applies = false;          // it takes a name of one of them, used or not
  std::vector<std::string> remarks;  // which prefix was dropped, which side was mapped
};

/// Takes the entries out of both checkpoints and pairs them. Drops the names of wrappers. On each side it
/// tries to drop the heads that programs add (`state_dict.model.`) and to apply the map, and uses the way
/// that makes the most names match.
Pairing pair_up(Checkpoint first, Checkpoint second, const NameMap& map);

}  // namespace msprobe::checkpoint
