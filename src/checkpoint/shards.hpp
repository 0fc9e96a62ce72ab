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

  /// In the order in which names came first. Parts of one place are copies of the first of them; what is
  /// missing or does not fit stands in an entry's problem.
  std::vector<Entry> finish();

 private:
  std::unordered_map<std::string, std::size_t> index_;
  std::vector<std::pair<std::string, std::vector<Shard>>> shards_;
};

}  // namespace msprobe::checkpoint
