// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/quantized_forms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "checkpoint/loaders.hpp"
#include "checkpoint/names.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/text.hpp"

namespace msprobe::checkpoint {
namespace {

using tensor::DType;

/// Keys that both checkpoints must share if their stored tensors are to be compared: names without the heads
/// that programs add, types and shapes.
std::vector<std::string> keys_of(const Checkpoint& checkpoint, const std::vector<QuantizedWeight>& found) {
  if (found.empty()) return {};
  std::vector<std::string> names;
  for (const CheckpointEntry& entry : checkpoint.entries)
    names.push_back(without_wrappers(entry.parameter.name));
  const Heads heads = possible_heads(names).back();
  std::vector<std::string> keys;
  for (const QuantizedWeight& one : found) {
    std::string key = without_heads(without_wrappers(one.name), heads);
    std::vector<std::string> parts;
    for (const std::size_t i : one.used) {
      const Parameter& part = checkpoint.entries[i].parameter;
      parts.push_back(fmt::format("\n{} {} {}", without_heads(names[i], heads), tensor::info(part.dtype).name,
                                  shape_text(part.shape)));
    }
    std::ranges::sort(parts);
    for (const std::string& part : parts) key += part;
    keys.push_back(std::move(key));
  }
  return keys;
}

void replace(Checkpoint& checkpoint, std::vector<QuantizedWeight>& found, const std::vector<bool>& wanted,
             std::vector<std::string>& lines) {
  std::vector<bool> gone(checkpoint.entries.size());
  std::map<std::string, std::size_t> kinds;
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (!wanted[i] || std::ranges::any_of(found[i].used, [&](std::size_t k) { return gone[k]; })) continue;
    ++kinds[found[i].kind];
    for (const std::size_t k : found[i].used) gone[k] = true;
    const std::size_t place = found[i].used.front();
    gone[place] = false;
    CheckpointEntry entry;
    entry.parameter = std::move(found[i].parameter);
    checkpoint.entries[place] = std::move(entry);
  }
  std::size_t at = 0;
  std::erase_if(checkpoint.entries, [&](const CheckpointEntry&) { return gone[at++]; });
  for (const auto& [kind, count] : kinds) {
    lines.push_back(fmt::format("{}: {} weight{} dequantized ({})", display(checkpoint.path),
                                human_count(count), count == 1 ? " is" : "s are", kind));
  }
}

/// Reports codes that could not be dequantized, unless the other checkpoint has a tensor of that name and
/// type.
void tell_left(const Checkpoint& checkpoint, const std::vector<LeftCodes>& left, const Checkpoint& other,
               std::vector<std::string>& lines) {
  if (left.empty()) return;
  std::set<std::pair<std::string, DType>> stored;
  for (const CheckpointEntry& entry : other.entries)
    stored.emplace(without_wrappers(entry.parameter.name), entry.parameter.dtype);
  std::size_t count = 0;
  std::string first;
  for (const LeftCodes& codes : left) {
    const Parameter& parameter = checkpoint.entries[codes.entry].parameter;
    if (stored.contains({without_wrappers(parameter.name), parameter.dtype}) || count++ > 0) continue;
    first = fmt::format("{} ({})", display(parameter.name), codes.reason);
  }
  if (count == 0) return;
  const std::string more = count == 1 ? "" : fmt::format(" and {} more", human_count(count - 1));
  lines.push_back(
      fmt::format("{}: not dequantized, but left as stored: {}{}", display(checkpoint.path), first, more));
}

}  // namespace

std::vector<std::string> dequantize(Checkpoint& first, Checkpoint& second) {
  auto [ours, our_left] = quantized_weights(first);
  auto [theirs, their_left] = quantized_weights(second);
  const std::vector<std::string> our_keys = keys_of(first, ours);
  const std::vector<std::string> their_keys = keys_of(second, theirs);
  const auto missing_in = [](const std::vector<std::string>& keys, const std::vector<std::string>& other) {
    const std::unordered_set<std::string> known(other.begin(), other.end());
    std::vector<bool> missing;
    for (const std::string& key : keys) missing.push_back(!known.contains(key));
    return missing;
  };
  std::vector<std::string> lines;
  tell_left(first, our_left, second, lines);
  tell_left(second, their_left, first, lines);
  replace(first, ours, missing_in(our_keys, their_keys), lines);
  replace(second, theirs, missing_in(their_keys, our_keys), lines);
  return lines;
}

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
