// SPDX-License-Identifier: Apache-2.0
// The arrays of a Flax checkpoint in the form in which PyTorch has the same parameters.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "formats/flax.hpp"

namespace msprobe::checkpoint {

struct FlaxEntries {
  std::vector<CheckpointEntry> entries;
  std::size_t transposed = 0;  // how many kernels were transposed
};

/// `kernel`, `scale` and `embedding` become `weight`. A kernel that is a matrix is transposed, because Flax
/// multiplies by it from the other side. Kernels of convolutions keep the order of their axes.
FlaxEntries flax_entries(const std::shared_ptr<const formats::FlaxFile>& file);

}  // namespace msprobe::checkpoint
