// SPDX-License-Identifier: Apache-2.0
#include "collector/c_tensor.hpp"

#include <cstdint>

namespace msprobe::collector {

std::optional<tensor::DType> dtype_of(std::uint32_t dtype) {
  if (dtype == MSPROBE_DTYPE_OTHER) return std::nullopt;
  if (dtype >= static_cast<std::uint32_t>(tensor::kDTypeCount))
    throw InvalidCall("a tensor has an unknown dtype");
  return static_cast<tensor::DType>(dtype);
}

TensorView view_of(const msprobe_tensor& tensor) {
  TensorView view;
  if (tensor.ndim > kMaxRank) throw InvalidCall("a tensor has more than 64 axes");
  if (tensor.ndim > 0 && tensor.shape == nullptr) throw InvalidCall("a tensor has axes but no shape");
  const std::optional<tensor::DType> dtype = dtype_of(tensor.dtype);
  view.data = dtype ? static_cast<const std::byte*>(tensor.data) : nullptr;
  view.dtype = dtype.value_or(tensor::DType::uint8);
  view.rank = tensor.ndim;
  view.conjugate = (tensor.flags & MSPROBE_TENSOR_CONJ) != 0;
  view.negative = (tensor.flags & MSPROBE_TENSOR_NEG) != 0;

  // All offsets in bytes must fit into 64 bits, whatever strides the caller passes.
  constexpr std::int64_t kMost = INT64_MAX / 32;
  std::int64_t dense = 1;
  std::int64_t reach = 0;
  bool empty = false;
  for (std::size_t axis = view.rank; axis-- > 0;) {
    const std::int64_t length = tensor.shape[axis];
    if (length < 0) throw InvalidCall("an axis of a tensor has a negative length");
    const std::int64_t stride = tensor.strides == nullptr ? dense : tensor.strides[axis];
    view.shape[axis] = length;
    view.strides[axis] = stride;
    if (length == 0) empty = true;
    if (length <= 1) continue;
    std::int64_t span = 0;
    if (__builtin_mul_overflow(dense, length, &dense) || dense > kMost || stride > kMost || stride < -kMost ||
        __builtin_mul_overflow(stride < 0 ? -stride : stride, length - 1, &span) ||
        __builtin_add_overflow(reach, span, &reach) || reach > kMost) {
      throw InvalidCall("a tensor is larger than memory can hold");
    }
  }
  view.count = empty ? 0 : static_cast<std::uint64_t>(dense);
  return view;
}

namespace {

// The layout that DLPack defines (dlpack.h); a tensor that is borrowed for a call needs no more of it.
struct DlTensor {
  void* data;
  std::int32_t device_type;
  std::int32_t device_id;
  std::int32_t ndim;
  std::uint8_t type_code;
  std::uint8_t type_bits;
  std::uint16_t type_lanes;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
};
constexpr std::int32_t kDlCpu = 1;
constexpr std::int32_t kDlCudaHost = 3;

std::optional<msprobe_dtype> dtype_from_dlpack(std::uint8_t code, std::uint8_t bits) {
  struct DlpackType {
    std::uint8_t code, bits;
    msprobe_dtype dtype;
  };
  static constexpr DlpackType kTypes[] = {
      {0, 64, MSPROBE_INT64},          {0, 32, MSPROBE_INT32},
      {0, 16, MSPROBE_INT16},          {0, 8, MSPROBE_INT8},
      {1, 64, MSPROBE_UINT64},         {1, 32, MSPROBE_UINT32},
      {1, 16, MSPROBE_UINT16},         {1, 8, MSPROBE_UINT8},
      {2, 64, MSPROBE_FLOAT64},        {2, 32, MSPROBE_FLOAT32},
      {2, 16, MSPROBE_FLOAT16},        {4, 16, MSPROBE_BFLOAT16},
      {5, 128, MSPROBE_COMPLEX128},    {5, 64, MSPROBE_COMPLEX64},
      {5, 32, MSPROBE_COMPLEX32},      {6, 8, MSPROBE_BOOL},
      {10, 8, MSPROBE_FLOAT8_E4M3FN},  {11, 8, MSPROBE_FLOAT8_E4M3FNUZ},
      {12, 8, MSPROBE_FLOAT8_E5M2},    {13, 8, MSPROBE_FLOAT8_E5M2FNUZ},
      {14, 8, MSPROBE_FLOAT8_E8M0FNU},
  };
  for (const DlpackType& type : kTypes) {
    if (type.code == code && type.bits == bits) return type.dtype;
  }
  return std::nullopt;
}

}  // namespace

msprobe_tensor tensor_from_dlpack(const void* dl_tensor) {
  DlTensor from;
  std::memcpy(&from, dl_tensor, sizeof from);
  if (from.device_type != kDlCpu && from.device_type != kDlCudaHost)
    throw InvalidCall("the DLTensor is not in host memory");
  const std::optional<msprobe_dtype> dtype = dtype_from_dlpack(from.type_code, from.type_bits);
  if (!dtype || from.type_lanes != 1) throw InvalidCall("the DLTensor has an unknown type");
  if (from.ndim < 0) throw InvalidCall("the DLTensor has a negative number of axes");
  msprobe_tensor result = {};
  if (from.data != nullptr) result.data = static_cast<const std::byte*>(from.data) + from.byte_offset;
  result.shape = from.shape;
  result.strides = from.strides;
  result.ndim = static_cast<std::uint32_t>(from.ndim);
  result.dtype = *dtype;
  return result;
}

namespace {

template <typename To, typename From>
To with_numbers_of(const From& from) {
  To to = {};
  to.max = from.max;
  to.min = from.min;
  to.mean = from.mean;
  to.norm = from.norm;
  to.integer_max = from.integer_max;
  to.integer_min = from.integer_min;
  to.count = from.count;
  to.zero = from.zero;
  to.nan = from.nan;
  to.inf = from.inf;
  return to;
}

}  // namespace

Measured measured_of(const msprobe_statistics& statistics) {
  return with_numbers_of<Measured>(statistics);
}

msprobe_statistics statistics_of(const Measured& measured) {
  auto result = with_numbers_of<msprobe_statistics>(measured);
  result.struct_size = sizeof result;
  return result;
}

}  // namespace msprobe::collector
