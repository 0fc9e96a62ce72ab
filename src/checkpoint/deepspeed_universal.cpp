// SPDX-License-Identifier: Apache-2.0
// DeepSpeed's universal form (ds_to_universal.py): a folder for each parameter below `zero`, with the
// single-precision copy that DeepSpeed loads (`fp32.pt`) and the state of the optimizer. The file of the
// model beside it has the buffers, and names that share a tensor.
#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <unordered_map>
#include <utility>

#include "checkpoint/loaders.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/text.hpp"

namespace msprobe::checkpoint {
namespace {

using formats::Pickle;
using formats::PickleKind;
using Tensors = std::shared_ptr<const formats::TorchTensors>;

constexpr const char* kZero = "zero";
constexpr const char* kWeights = "fp32.pt";

class Universal {
 public:
  Universal(std::string folder, std::string model_file)
      : folder_(std::move(folder)), model_file_(std::move(model_file)) {}

  Checkpoint run(const CheckpointLoadOptions& options) {
    checkpoint_.format = "DeepSpeed universal";
    const std::string zero = in_folder(folder_, kZero);
    for (const std::string& name : names_in(zero, WhichNames::folders))
      add(in_folder(zero, name), name, options);
    add_model();
    return std::move(checkpoint_);
  }

 private:
  void add(const std::string& folder, const std::string& name, const CheckpointLoadOptions& options) {
    index_.emplace(name, checkpoint_.entries.size());
    checkpoint_.entries.push_back(tensor_of(in_folder(folder, kWeights), name));
    if (!options.optimizer) return;
    for (const std::string& file : names_in(folder, WhichNames::regular_files)) {
      if (file == kWeights || !file.ends_with(".pt")) continue;
      const std::string state = file.substr(0, file.size() - 3);
      checkpoint_.entries.push_back(
          tensor_of(in_folder(folder, file), fmt::format("optimizer.state.{}.{}", name, state)));
    }
  }

  /// Such a file has one tensor, by itself or as `param` of a dict.
  CheckpointEntry tensor_of(const std::string& path, const std::string& name) {
    try {
      const auto tensors = std::make_shared<const formats::TorchTensors>(open_file(path));
      note_dangers(checkpoint_.warnings, path, tensors->pickle());
      for (std::size_t i = 0; i < tensors->size(); ++i) {
        if (tensors->name(i).empty() || tensors->name(i) == "param") return entry_of(tensors, i, name);
      }
      throw FormatError(display(path), "it has no 'param'");
    } catch (const Error& error) {
      CheckpointEntry entry;
      entry.parameter.name = name;
      entry.problem = error.what();
      return entry;
    }
  }

  void add_model() {
    constexpr std::string_view kModule = "module.";
    const Tensors model = std::make_shared<const formats::TorchTensors>(open_file(model_file_));
    note_dangers(checkpoint_.warnings, model_file_, model->pickle());
    const auto sources = shared_names(model->pickle());
    std::size_t groups = 0;
    for (std::size_t i = 0; i < model->size(); ++i) {
      if (!model->name(i).starts_with(kModule)) continue;
      std::string name = model->name(i).substr(kModule.size());
      if (const auto known = index_.find(name); known != index_.end()) {
        add_copy(checkpoint_.entries[known->second], entry_of(model, i, name));
        continue;
      }
      const auto source = sources.find(name);
      const auto kept = source == sources.end() ? index_.end() : index_.find(source->second);
      if (kept == index_.end()) {
        checkpoint_.entries.push_back(entry_of(model, i, std::move(name)));
        continue;
      }
      CheckpointEntry& original = checkpoint_.entries[kept->second];
      if (original.tied == 0) original.tied = ++groups;
      CheckpointEntry twin = original;
      twin.parameter.name = std::move(name);
      checkpoint_.entries.push_back(std::move(twin));
    }
  }

  /// The model's file has a copy of the parameter. It must be equal, unless a narrower type rounds it.
  void add_copy(CheckpointEntry& entry, CheckpointEntry copy) const {
    const Parameter& parameter = copy.parameter;
    const bool alike = copy.problem.empty() && parameter.dtype == entry.parameter.dtype &&
                       parameter.shape == entry.parameter.shape;
    if (alike)
      entry.replicas.push_back(
          {std::move(copy.parameter), std::filesystem::path(model_file_).filename().string(), {}});
  }

  /// Maps a name to the other name that it shares its tensor with.
  static std::unordered_map<std::string, std::string> shared_names(const Pickle& pickle) {
    std::unordered_map<std::string, std::string> sources;
    if (pickle.kind(pickle.root()) != PickleKind::dict) return sources;
    const auto shared = pickle.find(pickle.root(), "shared_params");
    if (!shared || pickle.kind(*shared) != PickleKind::dict) return sources;
    const auto pairs = pickle.pairs(*shared);
    for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
      if (pickle.kind(pairs[i]) == PickleKind::text && pickle.kind(pairs[i + 1]) == PickleKind::text)
        sources.emplace(pickle.text(pairs[i]), pickle.text(pairs[i + 1]));
    }
    return sources;
  }

  std::string folder_;
  std::string model_file_;
  Checkpoint checkpoint_;
  std::unordered_map<std::string, std::size_t> index_;  // of the parameters below `zero`
};

}  // namespace

bool is_deepspeed_universal(const std::string& folder) {
  return !folder_below(in_folder(folder, kZero), [](const std::string& file) {
            return file == kWeights;
          }).empty();
}

Checkpoint load_deepspeed_universal(const std::string& folder, const std::string& model_file,
                                    const CheckpointLoadOptions& options) {
  return Universal(folder, model_file).run(options);
}

}  // namespace msprobe::checkpoint
