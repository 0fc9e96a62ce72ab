// SPDX-License-Identifier: Apache-2.0
// Pairs the recorded gradients of parameters where the two runs have other numbers of backward passes.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "dump/construct_json.hpp"
#include "dump/side.hpp"

namespace msprobe::pairing {

struct GradientPasses {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> pairs;  // entries of the target and of golden
  /// Marks the gradients after a pass that the other side does not run and no step of an optimizer takes
  /// alone. Both are empty if both sides run as many passes.
  std::vector<bool> target_earlier;
  std::vector<bool> golden_earlier;
  std::unordered_set<std::string_view> modules;  // names of the target: those that run other numbers
};

/// Pairs the recorded gradients of each module that is called as often in both runs, where the runs have
/// other numbers of them: one runs a backward for each part of the loss, the other for their sum, or one
/// lets the gradient of another model's loss pass through. Gradients add up until a step of the optimizer
/// takes them, so that of those before each step the last ones are partners. The tables may be null.
GradientPasses pair_gradient_passes(const dump::Side& target, const dump::ConstructTable* target_construct,
                                    const dump::Side& golden, const dump::ConstructTable* golden_construct);

}  // namespace msprobe::pairing
