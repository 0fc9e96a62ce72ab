// SPDX-License-Identifier: Apache-2.0
// Layer mapping (docs/pairing.md, "-lm"): entries correspond if they stand at the same place of the model,
// whatever they are called.
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

/// Where a side's entries stand: construct.json and stack.json.
struct ModelPlaces {
  std::shared_ptr<const dump::ConstructTable> construct;
  dump::StackTable stacks;
  bool stacks_of_side = false;  // those that the side itself has are the ones
  bool mindspore = false;
};

/// Reads both files beside the side's dump.json, what the side and `construct` have read not again. A missing
/// stack.json is nothing; a missing construct.json is an IoError that says what it is needed for. FormatError
/// for broken files.
ModelPlaces read_model_places(const Side& side, const dump::ConstructBeside* construct = nullptr);

/// For each entry of the target its partner among the golden side's entries, or kUnmatched.
struct LayerPartners {
  std::vector<std::uint32_t> golden_of;
  bool mapping_applies = false;  // a rule of the mapping names a layer on the way to an entry
};
LayerPartners map_layers(const Side& target, const ModelPlaces& target_places, const Side& golden,
                         const ModelPlaces& golden_places, const LayerMapping& mapping);

}  // namespace msprobe::pairing
