// SPDX-License-Identifier: Apache-2.0
// Parameters whose parts come from several files, each with its place in the whole.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "checkpoint/checkpoint.hpp"

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

}  // namespace msprobe::checkpoint
