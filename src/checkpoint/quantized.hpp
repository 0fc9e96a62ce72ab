// SPDX-License-Identifier: Apache-2.0
// Quantized weights of two checkpoints: compared as they are stored, or as the numbers that they stand for.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"

namespace msprobe::checkpoint {

/// Puts the weights that they stand for in the place of quantized ones, unless the other checkpoint has the
/// same tensors: those are compared as they are stored. Gives a line for people for each checkpoint and kind.
/// FormatError or IoError if what tells the layout (shapes, states in JSON) cannot be read.
std::vector<std::string> dequantize(Checkpoint& first, Checkpoint& second);

}  // namespace msprobe::checkpoint
