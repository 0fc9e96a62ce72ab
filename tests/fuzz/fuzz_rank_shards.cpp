// SPDX-License-Identifier: Apache-2.0
// State dicts of DTensors and ShardedTensors, a file a rank: their places, and the joining of them.
#include <cstddef>
#include <cstdint>
#include <string>

#include "fuzz_checkpoint.hpp"
#include "fuzz_target.hpp"

FUZZ_TARGET(rank_shards)(const std::uint8_t* data, std::size_t size) {
  static const msprobe::FuzzFolder folder;
  folder.clear();
  const auto files = msprobe::files_of(data, size);
  for (std::size_t rank = 0; rank < files.size(); ++rank) {
    folder.add("model_world_size_" + std::to_string(files.size()) + "_rank_" + std::to_string(rank) + ".pt",
               files[rank]);
  }
  msprobe::read_checkpoint(folder.path());
}
