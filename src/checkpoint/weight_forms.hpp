// SPDX-License-Identifier: Apache-2.0
// A folder may hold the weights of a model several times: in safetensors and in PyTorch's files, in one file
// and in pieces, as DeepSpeed keeps them. The usual loader reads one of these forms.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/checkpoint.hpp"

namespace msprobe::checkpoint {

struct WeightForm {
  enum class WeightLayout {
    safetensors,  // one file, or all pieces without an index
    index,
    files,      // of PyTorch and other programs
    gguf,       // of llama.cpp: names, types and the order of some rows are its own
    deepspeed,  // the folder itself, or the one that its `latest` names
  };
  WeightLayout kind = WeightLayout::safetensors;
  std::vector<std::string> files;  // names in the folder; of an index that alone
};

/// The forms among the names of a folder's files, in the order in which from_pretrained() of transformers and
/// diffusers looks for them; may be empty.
std::vector<WeightForm> weight_forms(const std::string& folder, const std::vector<std::string>& names);

/// Files with weights of other frameworks and programs, which are not read.
std::vector<std::string> unread_weights(const std::vector<std::string>& names);

/// "model.safetensors", "3 files from model-00001.safetensors on".
std::string form_name(const WeightForm& form);

/// Says how another form contradicts the one that was read, by names, shapes, and the first and last elements
/// of each parameter; empty if it does not. Narrower types may round.
std::string contradiction(const Checkpoint& read, const Checkpoint& other);

/// "an Orbax checkpoint, which is not read: ...", or a text about an unfinished download. Empty if the names
/// in the folder say nothing. Only names are examined.
std::string unread_folder_reason(const std::string& folder);

}  // namespace msprobe::checkpoint
