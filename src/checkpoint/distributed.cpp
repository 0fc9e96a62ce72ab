// SPDX-License-Identifier: Apache-2.0
// torch.distributed.checkpoint, and Megatron's torch_dist on top of it, which stacks layers and experts.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "checkpoint/loaders.hpp"
#include "checkpoint/name_map.hpp"
#include "checkpoint/names.hpp"
#include "formats/dcp.hpp"
#include "formats/safetensors.hpp"
#include "formats/torch_file.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/text.hpp"

namespace msprobe::checkpoint {
namespace {

class ChunkFiles {
 public:
  explicit ChunkFiles(std::string folder) : folder_(std::move(folder)) {}

  /// On failure returns nothing and sets `problem`.
  TensorSource open(const std::string& name, const formats::DcpChunk& chunk, std::string& problem) {
    const auto [at, is_new] = open_.try_emplace(chunk.file);
    Opened& opened = at->second;
    if (is_new) {
      try {
        open_first(chunk.file, opened);
      } catch (const Error& error) {
        opened.problem = error.what();
      }
    }
    problem = opened.problem;
    if (!problem.empty()) return {};
    if (opened.tensors == nullptr) {
      // The stretch of the file is itself a saved tensor.
      return [file = opened.file, begin = chunk.offset, length = chunk.length] {
        return formats::open_torch_tensor(slice_source(file, begin, length));
      };
    }
    const auto index = opened.index.find(name);
    if (index != opened.index.end()) return source_of(opened.tensors, index->second);
    problem = fmt::format("{}: missing from this file, although the metadata places it here",
                          display(opened.file->name()));
    return {};
  }
  const std::string& folder() const { return folder_; }

 private:
  struct Opened {
    std::shared_ptr<const ByteSource> file;
    std::shared_ptr<const formats::SafetensorsFile> tensors;  // if it is a safetensors file
    std::unordered_map<std::string_view, std::size_t> index;  // of its tensors
    std::string problem;
  };

  void open_first(const std::string& relative, Opened& opened) const {
    opened.file = open_file_beneath(folder_, relative);
    if (!formats::looks_like_safetensors(*opened.file)) return;
    opened.tensors = std::make_shared<const formats::SafetensorsFile>(opened.file);
    for (std::size_t i = 0; i < opened.tensors->size(); ++i) opened.index.emplace(opened.tensors->name(i), i);
  }

  std::string folder_;
  std::map<std::string, Opened> open_;
};

CheckpointEntry stored_entry(const formats::DcpTensor& tensor, ChunkFiles& files) {
  CheckpointEntry entry;
  entry.parameter.name = tensor.name;
  entry.parameter.dtype = tensor.dtype;
  entry.problem = tensor.problem;
  if (!entry.problem.empty()) return entry;
  try {
    checked_numel(tensor.size, tensor.name);
    entry.parameter.shape = tensor.size;
    for (const formats::DcpChunk& chunk : tensor.chunks) {
      entry.problem = chunk.problem;
      if (!entry.problem.empty()) return entry;
      TensorSource source = files.open(tensor.name, chunk, entry.problem);
      if (!source) return entry;
      Parameter part = whole(tensor.name, tensor.dtype, chunk.sizes, std::move(source));
      part.blocks[0].offset = chunk.offsets;
      entry.parameter.blocks.push_back(std::move(part.blocks[0]));
    }
  } catch (const FormatError& error) {
    entry.problem = fmt::format("{}: {}", display(in_folder(files.folder(), ".metadata")), error.what());
  }
  return entry;
}

/// The text before the number in the names of the parts of a stack, and the text after it.
using PartName = std::optional<std::pair<std::string, std::string>>;

/// Splits a stacked axis. Returns the entry unchanged if its name is not that of a stack, or if splitting
/// costs too much.
std::vector<CheckpointEntry> unstack(CheckpointEntry entry, StackBudget& budget, const PartName& name) {
  const Parameter& parameter = entry.parameter;
  std::vector<CheckpointEntry> parts;
  bool possible = name && entry.problem.empty() && !parameter.shape.empty();
  for (const ParameterBlock& block : parameter.blocks) {
    possible = possible && block.offset[0] >= 0 && block.extent(0) >= 0 &&
               block.offset[0] <= parameter.shape[0] - block.extent(0);
  }
  if (!possible || !budget.take(parameter.shape[0], parameter.blocks.size())) {
    parts.push_back(std::move(entry));
    return parts;
  }
  for (std::int64_t i = 0; i < parameter.shape[0]; ++i) {
    CheckpointEntry& part = parts.emplace_back();
    part.parameter = drop_axis(narrow(parameter, 0, i, 1), 0);
    part.parameter.name = fmt::format("{}{}.{}", name->first, i, name->second);
  }
  return parts;
}

/// `decoder.layers.mlp…` -> `decoder.layers.0.mlp…`, …
PartName name_of_layers(const std::string& name) {
  const auto parts = split(name, ".");
  const auto layers = std::ranges::find(parts, "layers");
  if (layers == parts.begin() || layers == parts.end() || layers + 1 == parts.end()) return {};
  const std::string_view next = *(layers + 1);
  if (next.empty() || next.find_first_not_of("0123456789") == std::string_view::npos) return {};
  constexpr std::string_view kLayers = ".layers.";
  const std::size_t at = name.find(kLayers) + kLayers.size();
  return std::pair{name.substr(0, at), name.substr(at)};
}

/// `…experts.experts.linear_fc1.weight` -> `…experts.local_experts.0.linear_fc1.weight`, …
PartName name_of_experts(const std::string& name) {
  constexpr std::string_view kStacked = ".experts.experts.";
  const std::size_t at = name.find(".experts.experts.linear_fc");
  if (at == std::string::npos) return {};
  return std::pair{name.substr(0, at) + ".experts.local_experts.", name.substr(at + kStacked.size())};
}

bool is_megatron(const std::string& folder) {
  if (path_exists(in_folder(folder, "common.pt"))) return true;
  constexpr std::uint64_t kMost = 1 << 16;
  try {
    const std::string text = read_all(*open_file(in_folder(folder, "metadata.json")), kMost);
    return text.find("sharded_backend") != std::string::npos;
  } catch (const Error&) {
    return false;
  }
}

/// Megatron's `fsdp_dtensor` form has no separate file that marks it, so the names decide.
bool has_megatron_names(const formats::DcpMetadata& metadata) {
  return std::ranges::any_of(metadata.tensors, [](const formats::DcpTensor& tensor) {
    return tensor.name.find(".self_attention.linear_qkv.") != std::string::npos;
  });
}

/// `fsdp_dtensor` keeps the halves of a gated projection apart: `linear_fc1.weight_w` and `weight_v`.
void join_gates(std::vector<CheckpointEntry>& entries) {
  std::unordered_map<std::string, std::size_t> index;
  for (std::size_t i = 0; i < entries.size(); ++i) index.emplace(entries[i].parameter.name, i);
  std::vector<bool> joined(entries.size());
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const std::string& name = entries[i].parameter.name;
    if (!name.ends_with("linear_fc1.weight_w") && !name.ends_with("linear_fc1.bias_w")) continue;
    const std::string stem = name.substr(0, name.size() - 2);
    const auto other = index.find(stem + "_v");
    if (other == index.end()) continue;
    joined[other->second] = true;
    entries[i] = join_entries(stem, {&entries[i], &entries[other->second]}, ParameterJoin::rows, {});
  }
  std::size_t at = 0;
  std::erase_if(entries, [&](const CheckpointEntry&) { return joined[at++]; });
}

}  // namespace

Checkpoint load_distributed(const std::string& folder, const CheckpointLoadOptions& options) {
  Checkpoint checkpoint;
  const auto file = open_file(in_folder(folder, ".metadata"));
  const formats::DcpMetadata metadata = formats::read_dcp_metadata(*file);
  note_dangers(checkpoint.warnings, file->name(), metadata.pickle);
  const bool is_torch_dist = is_megatron(folder);
  checkpoint.megatron_names = is_torch_dist || has_megatron_names(metadata);
  checkpoint.format = is_torch_dist               ? "Megatron torch_dist"
                      : checkpoint.megatron_names ? "Megatron fsdp_dtensor"
                                                  : "PyTorch distributed";
  if (is_torch_dist) {
    try {
      const formats::TorchTensors common(open_file(in_folder(folder, "common.pt")));
      checkpoint.architecture = TrainingArguments(common.pickle(), common.pickle().root()).architecture();
      note_dangers(checkpoint.warnings, in_folder(folder, "common.pt"), common.pickle());
    } catch (const Error& error) {
      checkpoint.warnings.push_back(error.what());
    }
  }
  ChunkFiles files(folder);
  StackBudget budget;
  for (const formats::DcpTensor& tensor : metadata.tensors) {
    const bool state = is_training_state(tensor.name);
    if (state && !options.optimizer) continue;
    CheckpointEntry entry = stored_entry(tensor, files);
    if (!checkpoint.megatron_names || state) {
      checkpoint.entries.push_back(std::move(entry));
      continue;
    }
    const PartName layers = name_of_layers(tensor.name);
    for (CheckpointEntry& layer : unstack(std::move(entry), budget, layers)) {
      const PartName experts = name_of_experts(layer.parameter.name);
      for (CheckpointEntry& part : unstack(std::move(layer), budget, experts)) {
        if (is_extra_state(part.parameter.name)) continue;
        part.parameter.name = megatron_name(part.parameter.name, true);
        checkpoint.entries.push_back(std::move(part));
      }
    }
  }
  if (checkpoint.megatron_names) join_gates(checkpoint.entries);
  return checkpoint;
}

}  // namespace msprobe::checkpoint
