// SPDX-License-Identifier: Apache-2.0
// The configuration beside a checkpoint that says how its weights were quantized: `quantize_config.json`, or
// `quantization_config` in `config.json`.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace msprobe::checkpoint {

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
