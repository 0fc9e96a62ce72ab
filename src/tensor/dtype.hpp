// SPDX-License-Identifier: Apache-2.0
// Element types: their sizes, and their names in PyTorch, NumPy and MindSpore.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace msprobe::tensor {

enum class DType : std::uint8_t {
  float64,
  float32,
  float16,
  bfloat16,
  float8_e4m3fn,
  float8_e5m2,
  float8_e4m3fnuz,
  float8_e5m2fnuz,
  float8_e8m0fnu,
  hifloat8,  // tapered precision of Ascend devices; neither PyTorch nor NumPy has it
  int64,
  int32,
  int16,
  int8,
  uint64,
  uint32,
  uint16,
  uint8,
  boolean,
  complex32,
  complex64,
  complex128,
  // These affine-quantized types are compared as the integers that they store.
  qint8,
  quint8,
  qint32,
};
inline constexpr int kDTypeCount = static_cast<int>(DType::qint32) + 1;

enum class DTypeKind : std::uint8_t { floating, integer, boolean, complex };

struct DTypeInfo {
  std::string_view name;       // "float32": the PyTorch name without "torch."
  std::size_t size;            // bytes of one element
  DTypeKind kind;              // quantized types count as integer
  std::string_view numpy;      // "<f4"; empty if NumPy has no such type
  std::string_view mindspore;  // "Float32"; empty if MindSpore has no such type
};

const DTypeInfo& info(DType dtype);

/// Converts "torch.float32" or "float32" to float32; also torch.half, torch.float, torch.double, torch.long,
/// torch.int, torch.short, torch.cfloat, torch.cdouble, torch.chalf. Returns nothing for other names.
std::optional<DType> dtype_from_torch(std::string_view name);

/// Converts "FloatStorage" (PyTorch storage classes, with or without "torch.") to float32.
std::optional<DType> dtype_from_storage_class(std::string_view name);

/// Converts float32 to "FloatStorage"; empty for types without a storage class.
std::string_view storage_class_of(DType dtype);

/// Converts "Float32" (MindSpore) to float32; also "mindspore.float32" (MindSpore under MSAdapter).
std::optional<DType> dtype_from_mindspore(std::string_view name);

/// Accepts the names of both frameworks.
std::optional<DType> dtype_from_name(std::string_view name);

/// The type of the real numbers in an element.
DType real_type(DType dtype);

/// Half the distance of neighbouring numbers around 1, for both parts of complex numbers; 0 for exact types.
double unit_roundoff(DType dtype);

}  // namespace msprobe::tensor
