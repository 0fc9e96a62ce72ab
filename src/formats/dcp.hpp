// SPDX-License-Identifier: Apache-2.0
// `.metadata` of torch.distributed.checkpoint: which tensors there are and where their chunks lie.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/pickle.hpp"
#include "support/byte_source.hpp"
#include "tensor/dtype.hpp"

namespace msprobe::formats {

/// A box of a tensor, in a stretch of a file that is one saved tensor of its own.
struct DcpChunk {
  std::vector<std::int64_t> offsets;
  std::vector<std::int64_t> sizes;
  std::string file;  // relative to the folder of the .metadata; a claim of the file, not yet a path
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
  std::string problem;  // why it cannot be read; empty: it can
};

struct DcpTensor {
  std::string name;
  tensor::DType dtype = tensor::DType::float32;
  std::vector<std::int64_t> size;
  std::vector<DcpChunk> chunks;  // none twice
  std::string problem;           // why it cannot be read; empty: it can
};

struct DcpMetadata {
  std::vector<DcpTensor> tensors;    // in the order of the file
  std::vector<std::string> objects;  // names of what is no tensor
  Pickle pickle;
};

/// FormatError naming the file and the reason if it is no such metadata. What is wrong with one tensor stands
/// in that tensor. Whether chunks fill their tensor is not checked here.
DcpMetadata read_dcp_metadata(const ByteSource& file);

}  // namespace msprobe::formats
