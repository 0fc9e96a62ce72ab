// SPDX-License-Identifier: Apache-2.0
// What the configuration beside a checkpoint says of how its weights were quantized: `quantize_config.json`,
// or `quantization_config` in `config.json`.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace msprobe::checkpoint {

class QuantizationSettings {
 public:
  /// Of a checkpoint at this path, a file or a folder. What cannot be read says nothing.
  explicit QuantizationSettings(const std::string& path);

  /// Is it AutoGPTQ's second format, whose zero points are stored as they are?
  bool is_second_gptq() const;

  /// What has one scale: `weight_block_size` of DeepSeek.
  struct Block {
    std::int64_t rows;
    std::int64_t columns;
  };
  std::optional<Block> block() const;

  /// Does compressed-tensors say that weights are not symmetric around 0? Of several groups all must.
  bool has_zero_points() const;

 private:
  nlohmann::json json_;  // null: there is none
};

}  // namespace msprobe::checkpoint
