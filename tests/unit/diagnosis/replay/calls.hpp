// SPDX-License-Identifier: Apache-2.0
// Calls made by hand, with their tensors in memory.
#pragma once

#include <bit>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "diagnosis/replay/replay.hpp"
#include "support/byte_source.hpp"

namespace msprobe::diagnosis::replay {

using tensor::DType;

template <typename Bits>
void put(std::vector<std::byte>& bytes, Bits bits) {
  const std::size_t at = bytes.size();
  bytes.resize(at + sizeof bits);
  std::memcpy(bytes.data() + at, &bits, sizeof bits);
}

/// The bytes of numbers that the type can hold exactly (float16: 0, 1, 65504 and infinity alone).
inline std::vector<std::byte> bytes_of(DType dtype, const std::vector<double>& values) {
  std::vector<std::byte> bytes;
  for (const double value : values) {
    switch (dtype) {
      case DType::float64:
        put(bytes, value);
        break;
      case DType::float32:
        put(bytes, static_cast<float>(value));
        break;
      case DType::bfloat16:
        put(bytes,
            static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(static_cast<float>(value)) >> 16U));
        break;
      case DType::float16:
        put(bytes, static_cast<std::uint16_t>(
                       value == 0 ? 0 : (value == 1 ? 0x3c00 : (value == 65504 ? 0x7bff : 0x7c00))));
        break;
      case DType::int64:
        put(bytes, static_cast<std::int64_t>(value));
        break;
      case DType::int8:
        put(bytes, static_cast<std::int8_t>(value));
        break;
      default:
        put(bytes, static_cast<std::uint8_t>(value));
    }
  }
  return bytes;
}

inline Tensor tensor_of(DType dtype, std::vector<std::int64_t> shape, const std::vector<double>& values) {
  Tensor result;
  result.shape = shape;
  result.dtype = dtype;
  formats::StoredTensor stored;
  stored.dtype = dtype;
  stored.shape = std::move(shape);
  stored.strides = formats::row_major_strides(stored.shape);
  stored.storage = memory_source(bytes_of(dtype, values));
  result.open = [stored] { return stored; };
  return result;
}

inline Value value_of(Tensor tensor) {
  Value value;
  value.kind = Value::ValueForm::tensor;
  value.tensor = std::move(tensor);
  return value;
}

inline Value f32(std::vector<std::int64_t> shape, const std::vector<double>& values) {
  return value_of(tensor_of(DType::float32, std::move(shape), values));
}

inline Value f64(std::vector<std::int64_t> shape, const std::vector<double>& values) {
  return value_of(tensor_of(DType::float64, std::move(shape), values));
}

inline Value number(double value) {
  Value result;
  result.kind = Value::ValueForm::real;
  result.number = value;
  return result;
}

inline Value integer(std::int64_t value) {
  Value result;
  result.kind = Value::ValueForm::integer;
  result.number = static_cast<double>(value);
  return result;
}

inline Value text(std::string value) {
  Value result;
  result.kind = Value::ValueForm::text;
  result.text = std::move(value);
  return result;
}

inline Value list(std::vector<Value> items) {
  Value result;
  result.kind = Value::ValueForm::list;
  result.items = std::move(items);
  return result;
}

/// `prefix.operation` with arguments by position and by name, and one output.
inline Call call_of(const std::string& name, std::vector<Value> positional, Value output,
                    std::vector<NamedValue> keywords = {}) {
  Call call;
  const std::size_t dot = name.find('.');
  call.prefix = name.substr(0, dot);
  call.operation = name.substr(dot + 1);
  call.is_module = call.prefix == "Module";
  call.has_inputs = true;
  call.positional = std::move(positional);
  call.keywords = std::move(keywords);
  call.outputs.push_back({"output.0", std::move(output.tensor)});
  return call;
}

inline ReplayedOutput one(const Call& call, const ReplayLimits& limits = {}) {
  return replay(call, limits).at(0);
}

/// Numbers between -1 and 1 that a float holds exactly, the same in every run.
inline std::vector<double> numbers(std::size_t count, std::uint32_t seed) {
  std::vector<double> result(count);
  for (double& value : result) {
    seed = seed * 1664525U + 1013904223U;
    value = static_cast<double>(seed >> 10U) / 0x1p21 - 1;
  }
  return result;
}

}  // namespace msprobe::diagnosis::replay
