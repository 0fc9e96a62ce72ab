// SPDX-License-Identifier: Apache-2.0
// Sides that divide the batch of a step into different numbers of parts (micro-batches, gradient
// accumulation). The tensors of one part have no counterpart; parameters and their updates have one.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "dump/side.hpp"
#include "pairing/alignment.hpp"

namespace msprobe::diagnosis {

/// How many parts each side has.
struct SplitBatch {
  std::uint64_t target = 1;
  std::uint64_t golden = 1;
};

/// Finds a split batch: most of the outputs of another size have fewer elements on one side by the factor by
/// which that side makes more calls. `golden_item`: by item of the target, or kNone.
std::optional<SplitBatch> split_batch(const dump::Side& target, const dump::Side& golden,
                                      const pairing::Alignment& alignment,
                                      const std::vector<std::uint32_t>& golden_item);

}  // namespace msprobe::diagnosis
