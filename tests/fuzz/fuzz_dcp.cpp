// SPDX-License-Identifier: Apache-2.0
// The metadata of a distributed checkpoint, and the parameters that its chunks make.
#include <cstddef>
#include <cstdint>
#include <memory>

#include "checkpoint/parameter.hpp"
#include "formats/dcp.hpp"
#include "fuzz_input.hpp"
#include "fuzz_target.hpp"

namespace msprobe {
namespace {

/// A tensor of any size whose elements are all the same one.
checkpoint::TensorSource constant(tensor::DType dtype, const checkpoint::Shape& shape) {
  formats::StoredTensor tensor;
  tensor.dtype = dtype;
  tensor.strides.assign(shape.size(), 0);
  tensor.shape = shape;
  tensor.storage = memory_source(std::vector<std::byte>(16));
  return [tensor] { return tensor; };
}

void read_some(const formats::DcpTensor& tensor) {
  constexpr std::int64_t kMost = 1 << 14;
  checkpoint::Parameter parameter;
  parameter.name = tensor.name;
  parameter.dtype = tensor.dtype;
  parameter.shape = tensor.size;
  if (checkpoint::checked_numel(tensor.size, tensor.name) > kMost) return;
  for (const formats::DcpChunk& chunk : tensor.chunks) {
    checkpoint::Parameter part =
        checkpoint::whole(tensor.name, tensor.dtype, chunk.sizes, constant(tensor.dtype, chunk.sizes));
    part.blocks[0].offset = chunk.offsets;
    parameter.blocks.push_back(std::move(part.blocks[0]));
  }
  checkpoint::ParameterReader reader(parameter);
  std::vector<std::byte> bytes(static_cast<std::size_t>(reader.remaining()) *
                               tensor::info(tensor.dtype).size);
  reader.read(bytes);
}

}  // namespace
}  // namespace msprobe

FUZZ_READER(dcp)(const std::uint8_t* data, std::size_t size) {
  using namespace msprobe;
  const formats::DcpMetadata metadata = formats::read_dcp_metadata(*fuzz_input(data, size));
  for (const formats::DcpTensor& tensor : metadata.tensors) {
    if (!tensor.problem.empty()) continue;
    unless_refused([&] { read_some(tensor); });
  }
}
