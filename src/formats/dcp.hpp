// SPDX-License-Identifier: Apache-2.0
// `.metadata` of torch.distributed.checkpoint: the names of the tensors and the places of their chunks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/pickle.hpp"
#include "support/byte_source.hpp"
#include "tensor/dtype.hpp"

namespace msprobe::formats {

/// A range of a file that a saved tensor occupies.
struct DcpPlace {
  std::string file;  // relative to the folder of the .metadata; a claim of the file, not yet a path
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::string problem;  // why the chunk cannot be read; empty if it can
};

/// A box (offsets and sizes along each axis) of a tensor, and the place of its elements.
struct DcpChunk : DcpPlace {
  std::vector<std::int64_t> offsets;
  std::vector<std::int64_t> sizes;
};

struct DcpTensor {
  std::string name;
  tensor::DType dtype = tensor::DType::float32;
  std::vector<std::int64_t> size;
  std::vector<DcpChunk> chunks;  // without duplicates
  std::string problem;           // why the tensor cannot be read; empty if it can
};

struct DcpMetadata {
  std::vector<DcpTensor> tensors;    // in the order of the file
  std::vector<std::string> objects;  // names of the values that are not tensors
  Pickle pickle;
};

/// FormatError naming the file and the reason if it is not such metadata. A fault of one tensor goes into its
/// `problem`. The reader does not check whether the chunks fill their tensor.
DcpMetadata read_dcp_metadata(const ByteSource& file);

}  // namespace msprobe::formats
