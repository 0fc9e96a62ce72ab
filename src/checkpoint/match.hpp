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
    std::optional<Parameter> surplus = {};  // rows of the vocabulary that one side alone has
  };
  /// A name that one side alone has, for what is compared under another name.
  struct Tied {
    std::string name;
    std::string kept;
    bool is_second = false;
    /// Without blocks where the file itself says that it is one tensor; else both, to be held against each
    /// other.
    Parameter parameter;
    Parameter kept_parameter;
  };
  std::vector<Pair> pairs;  // in model order
  std::vector<Tied> tied;
  /// A name that one side alone has, and that cannot be read there.
  struct Unreadable {
    std::string name;
    std::string problem;
  };
  std::vector<Unreadable> unreadable;
  std::vector<std::string> only_first;
  std::vector<std::string> only_second;
  /// Those of them that are one stored tensor.
  std::vector<Parameter> lone_first;
  std::vector<Parameter> lone_second;
  bool map_applies = false;          // it takes a name of one of them, used or not
  std::vector<std::string> remarks;  // which prefix was dropped, which side was mapped
};

/// Takes the entries out of both checkpoints. Names of wrappers are dropped; what programs put before the
/// names (`state_dict.model.`) and the map are tried on each side, and what makes the most names match is
/// used.
Pairing pair_up(Checkpoint first, Checkpoint second, const NameMap& map);

}  // namespace msprobe::checkpoint
