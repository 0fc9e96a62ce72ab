// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/quantization_settings.hpp"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <utility>

#include "checkpoint/loaders.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/folder.hpp"

namespace msprobe::checkpoint {

QuantizationSettings::QuantizationSettings(const std::string& path) {
  const std::string folder = is_folder(path) ? path : std::filesystem::path(path).parent_path().string();
  constexpr std::uint64_t kMost = std::uint64_t{1} << 20;
  for (const std::string_view file : {"quantize_config.json", "config.json"}) {
    try {
      nlohmann::json json = nlohmann::json::parse(
          read_all(*open_file(in_folder(folder, std::string(file))), kMost), nullptr, false);
      const bool is_part = json.is_object() && json.contains("quantization_config");
      if (is_part) json = nlohmann::json(std::move(json["quantization_config"]));
      if (!json.is_object() || (!is_part && file == "config.json")) continue;
      json_ = std::move(json);
      return;
    } catch (const Error&) {
      // There is no such file.
    }
  }
}

bool QuantizationSettings::is_second_gptq() const {
  const auto format = json_.find("checkpoint_format");
  return format != json_.end() && *format == "gptq_v2";
}

std::optional<QuantizationSettings::ScaleBlock> QuantizationSettings::block() const {
  const auto found = json_.find("weight_block_size");
  if (found == json_.end() || !found->is_array() || found->size() != 2) return {};
  constexpr std::uint64_t kMost = std::uint64_t{1} << 32;
  const auto side = [&](std::size_t i) -> std::int64_t {
    const nlohmann::json& value = (*found)[i];
    const std::uint64_t length = value.is_number_unsigned() ? value.get<std::uint64_t>() : 0;
    return length <= kMost ? static_cast<std::int64_t>(length) : 0;
  };
  if (side(0) == 0 || side(1) == 0) return {};
  return ScaleBlock{side(0), side(1)};
}

bool QuantizationSettings::has_zero_points() const {
  const auto groups = json_.find("config_groups");
  if (groups == json_.end() || !groups->is_object() || groups->empty()) return false;
  return std::ranges::all_of(*groups, [](const nlohmann::json& group) {
    const auto weights = group.is_object() ? group.find("weights") : group.end();
    if (weights == group.end() || !weights->is_object()) return false;
    const auto symmetric = weights->find("symmetric");
    return symmetric != weights->end() && *symmetric == false;
  });
}

}  // namespace msprobe::checkpoint
