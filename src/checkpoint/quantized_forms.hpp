// SPDX-License-Identifier: Apache-2.0
// Finds tensors of a checkpoint that together are one quantized weight (codes, scales, zero points) by the
// names and shapes that quantizing programs give them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"

namespace msprobe::checkpoint {

/// A quantized weight and the entries that it is made of.
struct QuantizedWeight {
  std::string name;
  std::string kind;               // for people: "float8_e4m3fn, blocks of 128 x 128"
  std::vector<std::size_t> used;  // indices of its entries
  Parameter parameter;            // the numbers that it represents, with its half step
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

/// Both lists are in the order of names. Throws FormatError or IoError if the data that describes the layout
/// (shapes, states in JSON) cannot be read.
QuantizedWeights quantized_weights(const Checkpoint& checkpoint);

/// Replaces quantized weights by the numbers that they represent, unless the other checkpoint has the same
/// tensors: then the stored tensors are compared. Returns a line for people for each checkpoint and kind.
/// Throws FormatError or IoError if the data that describes the layout (shapes, states in JSON) cannot be
/// read.
std::vector<std::string> dequantize(Checkpoint& first, Checkpoint& second);

/// The configuration beside a checkpoint that says how its weights were quantized: `quantize_config.json`, or
/// `quantization_config` in `config.json`.
class QuantizationSettings {
 public:
  /// `path`: a checkpoint, as a file or a folder. A configuration that cannot be read counts as missing.
  explicit QuantizationSettings(const std::string& path);

  /// True for AutoGPTQ's second format, whose zero points are stored as they are.
  bool is_second_gptq() const;

  /// The part of a matrix that has one scale: `weight_block_size` of DeepSeek.
  struct ScaleBlock {
    std::int64_t rows;
    std::int64_t columns;
  };
  std::optional<ScaleBlock> block() const;

  /// True if compressed-tensors says that weights are not symmetric around 0. With several groups, all must.
  bool has_zero_points() const;

 private:
  nlohmann::json json_;  // null if missing
};

}  // namespace msprobe::checkpoint
