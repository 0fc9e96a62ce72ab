// SPDX-License-Identifier: Apache-2.0
// Compares quantized weights of two checkpoints as they are stored, or as the numbers that they represent.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"

namespace msprobe::checkpoint {

/// Replaces quantized weights by the numbers that they represent, unless the other checkpoint has the same
/// tensors: then the stored tensors are compared. Returns a line for people for each checkpoint and kind.
/// Throws FormatError or IoError if the data that describes the layout (shapes, states in JSON) cannot be
/// read.
std::vector<std::string> dequantize(Checkpoint& first, Checkpoint& second);

}  // namespace msprobe::checkpoint
