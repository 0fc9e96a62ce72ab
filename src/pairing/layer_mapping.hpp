// SPDX-License-Identifier: Apache-2.0
// Layer mapping (docs/pairing.md, "-lm"): entries correspond if they have the same place in the model,
// whatever their names are.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dump/construct_json.hpp"
#include "pairing/mapping_file.hpp"
#include "pairing/matching.hpp"
#include "pairing/side.hpp"

namespace msprobe::pairing {

/// The places of a side's entries, from construct.json and stack.json.
struct ModelPlaces {
  std::shared_ptr<const dump::ConstructTable> construct;
  dump::StackTable stacks;
  bool stacks_of_side = false;  // the side itself holds the stacks
  bool mindspore = false;
};

/// Reads both files next to the side's dump.json, except for what the side and `construct` already hold. A
/// missing stack.json is accepted; a missing construct.json is an IoError that says why it is needed. Throws
/// FormatError for broken files.
ModelPlaces read_model_places(const Side& side, const dump::ConstructBeside* construct = nullptr);

/// The partner of each target entry among the golden entries, or kUnmatched.
struct LayerPartners {
  std::vector<std::uint32_t> golden_of;
  bool mapping_applies = false;  // a rule of the mapping names a layer on the way to an entry
};
LayerPartners map_layers(const Side& target, const ModelPlaces& target_places, const Side& golden,
                         const ModelPlaces& golden_places, const LayerMapping& mapping);

}  // namespace msprobe::pairing
