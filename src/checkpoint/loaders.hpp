// SPDX-License-Identifier: Apache-2.0
// The readers that load() uses, one per family of formats, and the code that they share.
#pragma once

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "formats/flax.hpp"
#include "formats/gguf.hpp"
#include "formats/tensor_set.hpp"
#include "formats/torch_tensors.hpp"

namespace msprobe::checkpoint {

/// One tensor of a file that holds many.
TensorSource source_of(std::shared_ptr<const formats::TensorSet> set, std::size_t index);

/// Makes a parameter of that name from the tensor. If the tensor is wrong, `problem` says why.
CheckpointEntry entry_of(const std::shared_ptr<const formats::TensorSet>& set, std::size_t index,
                         std::string name);

/// Adds the tensors of a GGUF file under the names of Hugging Face, from whose files most of them are made.
/// Splits tensors that hold several experts. Names that data/gguf_names.yaml does not have stay as they are.
void add_gguf(Checkpoint& checkpoint, const std::shared_ptr<const formats::GgufFile>& file,
              const std::string& path);

/// Adds the arrays of a Flax checkpoint in the form in which PyTorch has the same parameters: `kernel`,
/// `scale` and `embedding` become `weight`. A kernel that is a matrix is transposed, because Flax multiplies
/// by it from the other side. Kernels of convolutions keep the order of their axes.
void add_flax(Checkpoint& checkpoint, const std::shared_ptr<const formats::FlaxFile>& file,
              const std::string& path);

/// Finds the names of one tensor by its place in its file.
class TiedNames {
 public:
  /// `entries` may grow while this object exists; entries that it has already are left alone.
  explicit TiedNames(std::vector<CheckpointEntry>& entries);
  /// Notes that the last entry is stored at `place`. An empty place is unknown.
  void note_last(const std::string& place);

 private:
  std::vector<CheckpointEntry>& entries_;
  std::unordered_map<std::string, std::size_t> places_;  // index of the first entry there
  std::size_t groups_ = 0;
};

/// The properties that a configuration has under these keys: heads, query groups, the size of a head, the
/// size of the vocabulary, the hidden size.
Architecture architecture_of(const std::array<const char*, 5>& keys,
                             const std::function<std::optional<std::int64_t>(const char*)>& number);

/// The arguments that a training program left in its checkpoint, in any kind of record.
class TrainingArguments {
 public:
  TrainingArguments() = default;
  /// `root`: the dict that may have them under "args".
  TrainingArguments(const formats::Pickle& pickle, formats::PickleRef root);
  bool present() const { return present_; }
  std::optional<std::int64_t> integer(const std::string& name) const;
  std::optional<bool> boolean(const std::string& name) const;
  Architecture architecture() const;

 private:
  bool present_ = false;
  std::map<std::string, std::int64_t> values_;  // bools as 0 and 1
};

/// Warns of names in the pickle at `where` that a Python reader would have called and that can do harm.
void note_dangers(std::vector<std::string>& warnings, const std::string& where,
                  const formats::Pickle& pickle);

/// Opens files of PyTorch side by side, and warns of dangers in them.
std::vector<std::shared_ptr<const formats::TorchTensors>> open_all(const std::vector<std::string>& files,
                                                                   std::vector<std::string>& warnings);

/// The text of a small file without the blanks at its ends.
std::string read_line(const std::string& path);

std::string in_folder(const std::string& folder, const std::string& name);

bool has_rank_folders(const std::string& folder);
Checkpoint load_megatron(const std::string& folder, const CheckpointLoadOptions& options);
/// Loads one rank's file by itself: its slices count as whole parameters.
Checkpoint load_rank_file(const std::string& path, std::shared_ptr<const formats::TorchTensors> tensors,
                          const CheckpointLoadOptions& options);
/// True if the state of this file looks like that of a Megatron rank.
bool is_rank_file(const formats::TorchTensors& tensors);

/// A folder with `.metadata`: torch.distributed.checkpoint, and Megatron's torch_dist on top of it.
Checkpoint load_distributed(const std::string& folder, const CheckpointLoadOptions& options);

/// True if the file has parts of tensors that are spread over ranks.
bool has_shards(const formats::TorchTensors& tensors);
/// Joins files of one rank each.
Checkpoint load_rank_shards(const std::vector<std::string>& files, const CheckpointLoadOptions& options);

/// The folder with DeepSpeed's files of a model's state: this folder, or the one that its `latest` names.
/// Returns nothing if neither has such files.
std::optional<std::string> deepspeed_folder(const std::string& folder);
Checkpoint load_deepspeed(const std::string& folder, const CheckpointLoadOptions& options);
/// The files that an index names; empty if it cannot be read.
std::set<std::string> files_of_index(const std::string& folder, const std::string& index);
/// Loads a folder of files with an index of the tensors in each file.
Checkpoint load_indexed(const std::string& folder, const std::string& index,
                        const CheckpointLoadOptions& options);
/// Loads files that each hold some of the tensors.
Checkpoint load_files(const std::vector<std::string>& files, const CheckpointLoadOptions& options);

/// Adds the LoRA adapter (Hu et al. 2021) that PEFT saved in `folder` to the weights of `base`. The sums are
/// computed in double while they are read. Weights that the adapter stores whole (`modules_to_save`) replace
/// those of `base`. Returns a line for people. Throws FormatError for another kind of adapter, and for an
/// adapter with a module that `base` does not have.
std::string add_adapter(Checkpoint& base, const std::string& folder);

}  // namespace msprobe::checkpoint
