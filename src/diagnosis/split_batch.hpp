// SPDX-License-Identifier: Apache-2.0
// Sides that divide the batch of a step into another number of parts (micro-batches, gradient accumulation):
// what they compute of a part has no counterpart; parameters and their updates have.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "diagnosis/imports.hpp"
#include "dump/side.hpp"
#include "pairing/alignment.hpp"

namespace msprobe::diagnosis {

/// Into how many parts.
struct SplitBatch {
  std::uint64_t target = 1;
  std::uint64_t golden = 1;
};

/// Of the outputs of another size most have as many elements less on one side as that side makes more calls.
/// `golden_item`: by item of the target, or kNone.
std::optional<SplitBatch> split_batch(const dump::Side& target, const dump::Side& golden,
                                      const Alignment& alignment,
                                      const std::vector<std::uint32_t>& golden_item);

}  // namespace msprobe::diagnosis
