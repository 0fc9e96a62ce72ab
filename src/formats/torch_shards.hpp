// SPDX-License-Identifier: Apache-2.0
// Tensors of classes that keep their elements in other tensors. One kind are parts spread over ranks, which
// PyTorch saves as one file per rank: DTensor (FSDP2, tensor parallelism) and the older ShardedTensor
// (FSDP1). The other kind are all other classes.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "formats/torch_file.hpp"

namespace msprobe::formats {

struct TorchShard {
  PickleRef local = kNoPickleRef;   // the tensor that has the elements
  std::vector<std::int64_t> whole;  // the shape of the whole tensor
  std::vector<std::int64_t> offset;
  std::vector<std::int64_t> size;
  std::string problem;  // why its place is unknown; empty if it is known
};

/// Is the value such a tensor? read_shards() reports oddities in `problem`.
bool is_sharded(const TorchFile& file, PickleRef ref);

/// The parts of the tensor in this file: one of a DTensor, any number of a ShardedTensor.
std::vector<TorchShard> read_shards(const TorchFile& file, PickleRef ref);

/// The tensors that any other class of tensor keeps as attributes, with their names: `qdata` and `scale` of
/// torchao's quantized ones. Empty for tensors themselves.
std::vector<std::pair<std::string, PickleRef>> kept_tensors(const TorchFile& file, PickleRef ref);

}  // namespace msprobe::formats
