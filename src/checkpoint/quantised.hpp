// SPDX-License-Identifier: Apache-2.0
// Which tensors of a checkpoint are together one quantised weight: codes, scales, zero points, by the names
// and shapes that the programs give them which quantise.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"

namespace msprobe::checkpoint {

/// Puts the weights that they stand for in the place of quantised ones, unless the other checkpoint has the
/// same tensors: those are compared as they are stored. Gives a line for people for each checkpoint and kind.
/// FormatError or IoError if what tells the layout (shapes, states in JSON) cannot be read.
std::vector<std::string> dequantise(Checkpoint& first, Checkpoint& second);

}  // namespace msprobe::checkpoint
