// SPDX-License-Identifier: Apache-2.0
// The readers behind load(), one a family of formats, and what they share.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "formats/tensor_set.hpp"
#include "formats/torch_tensors.hpp"

namespace msprobe::checkpoint {

/// A tensor of a file that holds many.
std::shared_ptr<const TensorSource> source_of(std::shared_ptr<const formats::TensorSet> set,
                                              std::size_t index);

/// The tensor as a parameter of that name; what is wrong with it stands in `problem`.
Entry entry_of(const std::shared_ptr<const formats::TensorSet>& set, std::size_t index, std::string name);

/// Finds the names that stand for one tensor, by its place in its file.
class TiedNames {
 public:
  /// Of entries that are being added to; those that are there already are left alone.
  explicit TiedNames(std::vector<Entry>& entries);
  /// The last entry lies there. An empty place is not known.
  void note_last(const std::string& place);

 private:
  std::vector<Entry>& entries_;
  std::unordered_map<std::string, std::size_t> places_;  // index of the first entry there
  std::size_t groups_ = 0;
};

/// The arguments that a training program left in its checkpoint, in whatever kind of record.
class Arguments {
 public:
  Arguments() = default;
  /// `root`: the dict that may have them under "args".
  Arguments(const formats::Pickle& pickle, formats::PickleRef root);
  bool present() const { return present_; }
  std::optional<std::int64_t> integer(const std::string& name) const;
  std::optional<bool> boolean(const std::string& name) const;
  Architecture architecture() const;

 private:
  bool present_ = false;
  std::map<std::string, std::int64_t> values_;  // bools as 0 and 1
};

/// Warns of what the pickle at `where` names that a Python reader would have called and that can do harm.
void note_dangers(std::vector<std::string>& warnings, const std::string& where,
                  const formats::Pickle& pickle);

std::string in_folder(const std::string& folder, const std::string& name);

bool has_rank_folders(const std::string& folder);
Checkpoint load_megatron(const std::string& folder, const LoadOptions& options);
/// One rank's file by itself: its slices are taken as if they were the whole.
Checkpoint load_rank_file(const std::string& path, std::shared_ptr<const formats::TorchTensors> tensors,
                          const LoadOptions& options);
/// Does the state of this file look like a rank's of Megatron?
bool is_rank_file(const formats::TorchTensors& tensors);

/// A folder with `.metadata`: torch.distributed.checkpoint, and Megatron's torch_dist on top of it.
Checkpoint load_distributed(const std::string& folder, const LoadOptions& options);

/// Has the file parts of tensors that are spread over ranks?
bool has_shards(const formats::TorchTensors& tensors);
/// Files of one rank each, joined.
Checkpoint load_rank_shards(const std::vector<std::string>& files, const LoadOptions& options);

/// The folder with DeepSpeed's files of a model's state: this one, or the one that its `latest` names.
/// Nothing if there is none.
std::optional<std::string> deepspeed_folder(const std::string& folder);
Checkpoint load_deepspeed(const std::string& folder, const LoadOptions& options);
/// Are the parameters below `zero`, whole, whatever the layout of the ranks that wrote them?
bool is_deepspeed_universal(const std::string& folder);
/// `model_file`: the file *_model_states.pt of its first rank.
Checkpoint load_deepspeed_universal(const std::string& folder, const std::string& model_file,
                                    const LoadOptions& options);

/// The files that an index names; empty if it cannot be read.
std::set<std::string> files_of_index(const std::string& folder, const std::string& index);
/// A folder of files with an index that tells which tensor is in which.
Checkpoint load_indexed(const std::string& folder, const std::string& index, const LoadOptions& options);
/// Files that each hold some of the tensors.
Checkpoint load_files(const std::vector<std::string>& files, const LoadOptions& options);

}  // namespace msprobe::checkpoint
