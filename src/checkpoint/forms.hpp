// SPDX-License-Identifier: Apache-2.0
// One parameter in several forms: experts one by one or stacked, projections apart or fused.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "checkpoint/name_map.hpp"

namespace msprobe::checkpoint {

/// A parameter that found no partner under its name, or that was made of such parameters.
struct LooseParameter {
  CheckpointEntry entry;
  std::vector<std::size_t> sources;  // indices of the parameters it is made of
  /// Its name in its checkpoint, or the names of its parts, if not the name here: "experts.gate_up_proj[2]".
  std::string own_name = {};
};

/// Pairs of parameters that are the same in another form.
struct FormPairs {
  struct FormPair {
    std::string name;
    LooseParameter first;
    LooseParameter second;
  };
  std::vector<FormPair> pairs;
  /// Parameters that were made on the way and have no partner either.
  std::vector<LooseParameter> first;
  std::vector<LooseParameter> second;
};

/// True if both hold all experts in one tensor and have different shapes. One by one they may be the same.
bool are_stacks_of_two_forms(const CheckpointEntry& first, const CheckpointEntry& second);

struct LooseSide {
  std::vector<LooseParameter> parameters;
  bool is_mapped = true;  // the map may apply to its names
};
FormPairs pair_forms(LooseSide first, LooseSide second, const NameMap& map, const Architecture& architecture);

}  // namespace msprobe::checkpoint
