// SPDX-License-Identifier: Apache-2.0
// Which tensors of a checkpoint are together one quantized weight: codes, scales, zero points, by the names
// and shapes that the programs give them which quantize.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"

namespace msprobe::checkpoint {

/// A quantized weight and the entries that it is made of.
struct QuantizedWeight {
  std::string name;
  std::string kind;               // for people: "float8_e4m3fn, blocks of 128 x 128"
  std::vector<std::size_t> used;  // indices of its entries
  Parameter parameter;            // what it stands for, with its half step
};

/// Codes of a quantized weight that could not be put together.
struct LeftCodes {
  std::size_t entry;
  std::string reason;  // "w.scales is missing"
};

struct QuantizedWeights {
  std::vector<QuantizedWeight> weights;
  std::vector<LeftCodes> left;
};

/// Both in the order of their names. FormatError or IoError if what tells the layout (shapes, states in JSON)
/// cannot be read.
QuantizedWeights quantized_weights(const Checkpoint& checkpoint);

}  // namespace msprobe::checkpoint
