// SPDX-License-Identifier: Apache-2.0
// Tensors of classes that keep their elements in other tensors. Parts that are spread over ranks, as PyTorch
// saves them in a file a rank: DTensor (FSDP2, tensor parallelism) and the older ShardedTensor (FSDP1); and
// all others.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "formats/torch_file.hpp"

namespace msprobe::formats {

struct TorchShard {
  PickleRef local = kNoPickleRef;   // the tensor that has the elements
  std::vector<std::int64_t> whole;  // the shape of what it is a part of
  std::vector<std::int64_t> offset;
  std::vector<std::int64_t> size;
  std::string problem;  // why its place is not known; empty: it is
};

/// Is the value such a tensor? Whatever is odd about it stands in the problems of read_shards().
bool is_sharded(const TorchFile& file, PickleRef ref);

/// The parts of it in this file: one of a DTensor, any number of a ShardedTensor.
std::vector<TorchShard> read_shards(const TorchFile& file, PickleRef ref);

/// The tensors that any other class of tensor keeps as attributes, with their names: `qdata` and `scale` of
/// torchao's quantized ones. Empty for tensors themselves.
std::vector<std::pair<std::string, PickleRef>> kept_tensors(const TorchFile& file, PickleRef ref);

}  // namespace msprobe::formats
