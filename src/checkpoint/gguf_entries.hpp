// SPDX-License-Identifier: Apache-2.0
// The tensors of a GGUF file under the names of Hugging Face, from whose files most of them are made.
#pragma once

#include <memory>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "formats/gguf.hpp"

namespace msprobe::checkpoint {

struct GgufEntries {
  std::vector<CheckpointEntry> entries;
  std::size_t unpaired = 0;  // parameters whose rows were put back from pairs into halves of heads
};

/// Splits tensors that hold several experts. Names that data/gguf_names.yaml does not have stay as they are.
GgufEntries gguf_entries(const std::shared_ptr<const formats::GgufFile>& file);

Architecture gguf_architecture(const formats::GgufFile& file);

}  // namespace msprobe::checkpoint
