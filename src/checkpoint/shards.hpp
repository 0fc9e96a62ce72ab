// SPDX-License-Identifier: Apache-2.0
// Parameters whose parts come from several files, each with its place in the whole.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "checkpoint/checkpoint.hpp"
#include "formats/safetensors.hpp"

namespace msprobe::checkpoint {

struct Shard {
  Parameter part;
  Shape offset;                // of the part in the whole
  std::optional<Shape> whole;  // nothing: as far as the parts reach
  std::string where;           // for people: the file
  std::string problem;         // why it cannot be read
};

class ShardJoiner {
 public:
  void add(const std::string& name, Shard shard);

  /// Returns the parameters in the order in which their names first came. Parts of one place are copies of
  /// the first of them. If a part is missing or does not fit, the entry's problem says so.
  std::vector<CheckpointEntry> finish();

 private:
  std::unordered_map<std::string, std::size_t> index_;
  std::vector<std::pair<std::string, std::vector<Shard>>> shards_;
};

/// The note that the Hugging Face storage writer of torch.distributed.checkpoint puts into the header of its
/// safetensors files: the place of each tensor in its whole. Nothing if the file has no such note; throws
/// FormatError with `path` if the note is malformed.
using SavedOffsets = std::unordered_map<std::string, Shape>;
std::optional<SavedOffsets> saved_offsets(const formats::SafetensorsFile& file, const std::string& path);

}  // namespace msprobe::checkpoint
