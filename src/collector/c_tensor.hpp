// SPDX-License-Identifier: Apache-2.0
// Checks the structures of the C interface and converts them to the types that the collector uses.
#pragma once

#include <cstring>
#include <optional>
#include <stdexcept>

#include "collector/measure.hpp"
#include "collector/tensor_view.hpp"
#include "msprobe/collector.h"

namespace msprobe::collector {

/// A wrong argument: becomes MSPROBE_INVALID.
class InvalidCall : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

/// A copy of the part of a structure that the caller knows; the structure begins with struct_size, the rest
/// is 0.
template <typename T>
T known_part(const T* from) {
  if (from == nullptr) throw InvalidCall("a structure is missing");
  if (from->struct_size < sizeof(std::size_t)) throw InvalidCall("struct_size of a structure is not set");
  T copy = {};
  std::memcpy(static_cast<void*>(&copy), from, from->struct_size < sizeof(T) ? from->struct_size : sizeof(T));
  return copy;
}

/// Copies back the part of a structure that the caller knows.
template <typename T>
void give_known_part(T* to, T value) {
  value.struct_size = to->struct_size;
  std::memcpy(static_cast<void*>(to), &value, to->struct_size < sizeof(T) ? to->struct_size : sizeof(T));
}

/// Returns nothing for a type that has no values here.
std::optional<tensor::DType> dtype_of(std::uint32_t dtype);

/// The view of the tensor's elements. Its data may be null.
TensorView view_of(const msprobe_tensor& tensor);

/// Converts a DLTensor.
msprobe_tensor tensor_from_dlpack(const void* dl_tensor);

Measured measured_of(const msprobe_statistics& statistics);
msprobe_statistics statistics_of(const Measured& measured);

}  // namespace msprobe::collector
