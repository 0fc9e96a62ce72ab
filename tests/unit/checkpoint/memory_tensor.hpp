// SPDX-License-Identifier: Apache-2.0
// Parameters with their elements in memory.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "checkpoint/parameter.hpp"
#include "support/byte_source.hpp"

namespace msprobe::checkpoint {

template <typename T>
formats::StoredTensor stored(tensor::DType dtype, const Shape& shape, const std::vector<T>& values) {
  formats::StoredTensor tensor;
  tensor.dtype = dtype;
  tensor.shape = shape;
  tensor.strides = formats::row_major_strides(shape);
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  tensor.storage = memory_source(std::move(bytes), "memory.pt");
  return tensor;
}

template <typename T>
Parameter in_memory(tensor::DType dtype, const Shape& shape, const std::vector<T>& values,
                    std::string name = "p") {
  return whole(std::move(name), dtype, shape, [tensor = stored(dtype, shape, values)] { return tensor; });
}

/// All elements, read `piece` at a time.
template <typename T>
std::vector<T> elements(const Parameter& parameter, std::size_t piece = 7) {
  ParameterReader reader(parameter);
  std::vector<T> all;
  while (reader.remaining() > 0) {
    std::vector<T> some(std::min<std::size_t>(piece, static_cast<std::size_t>(reader.remaining())));
    reader.read(std::as_writable_bytes(std::span(some)));
    all.insert(all.end(), some.begin(), some.end());
  }
  return all;
}

}  // namespace msprobe::checkpoint
