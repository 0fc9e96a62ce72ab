// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/replay/array.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "support/error.hpp"
#include "support/interrupt.hpp"
#include "tensor/float_form.hpp"

namespace msprobe::diagnosis::replay {
namespace {

using tensor::DType;

constexpr std::size_t kLoadPiece = std::size_t{16} << 10;
// Integers beyond it are not exact in a double.
constexpr double kExactIntegers = 0x1p53;

/// The form of a floating-point type. Values of other types are held in doubles.
tensor::FloatForm form_of(DType dtype) {
  const auto form = tensor::float_form(dtype);
  return form ? *form : *tensor::float_form(DType::float64);
}

}  // namespace

void refuse_argument() {
  throw NoStatement(Status::unknown_argument);
}

std::int64_t count_of(const Shape& shape) {
  std::int64_t product = 1;
  for (const std::int64_t length : shape) {
    if (length < 0) refuse_argument();
    if (__builtin_mul_overflow(product, length, &product)) throw NoStatement(Status::too_large);
  }
  return product;
}

void Workspace::take(std::uint64_t elements) {
  if (elements > limits_.elements) throw NoStatement(Status::too_large);
  limits_.elements -= elements;
}

void Workspace::work(std::uint64_t steps) {
  check_interrupt();
  if (steps > limits_.work) throw NoStatement(Status::too_large);
  limits_.work -= steps;
}

Array Workspace::make(Shape shape, double fill) {
  Array array;
  const std::int64_t size = count_of(shape);
  take(static_cast<std::uint64_t>(size));
  array.shape = std::move(shape);
  array.values.assign(static_cast<std::size_t>(size), fill);
  return array;
}

ValueStream::ValueStream(const Tensor& tensor) {
  if (!tensor.plain) refuse_argument();
  if (count_of(tensor.shape) == 0) return;
  if (!tensor.open) throw NoStatement(Status::argument_not_recorded);
  try {
    const formats::StoredTensor stored = tensor.open();
    const tensor::DTypeKind kind = tensor::info(stored.dtype).kind;
    if (kind == tensor::DTypeKind::complex) refuse_argument();
    if (stored.shape != tensor.shape) throw NoStatement(Status::argument_not_recorded);
    is_integer_ = kind == tensor::DTypeKind::integer;
    reader_.emplace(stored);
  } catch (const Error& error) {
    throw NoStatement(Status::broken_off, error.what());
  }
}

std::span<const double> ValueStream::next() {
  std::span<const double> piece;
  try {
    piece = reader_->read(kLoadPiece);
  } catch (const Error& error) {
    throw NoStatement(Status::broken_off, error.what());
  }
  const auto is_inexact = [](double value) { return std::fabs(value) >= kExactIntegers; };
  if (is_integer_ && std::any_of(piece.begin(), piece.end(), is_inexact)) refuse_argument();
  return piece;
}

Array Workspace::describe(const Tensor& tensor) const {
  Array array;
  array.shape = tensor.shape;
  array.dtype = tensor.dtype;
  array.unread = &tensor;
  return array;
}

void Workspace::read(Array& array) {
  if (array.unread == nullptr) return;
  ValueStream stream(*array.unread);
  const auto size = static_cast<std::size_t>(count_of(array.shape));
  take(size);
  array.values.reserve(size);
  while (!stream.at_end()) {
    const std::span<const double> piece = stream.next();
    array.values.insert(array.values.end(), piece.begin(), piece.end());
  }
  array.unread = nullptr;
}

Array Workspace::load(const Tensor& tensor) {
  Array array = describe(tensor);
  read(array);
  return array;
}

Shape row_major(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (std::size_t axis = shape.size(); axis-- > 1;) {
    // Unsigned: lengths beside a length of 0 may be anything.
    strides[axis - 1] = static_cast<std::int64_t>(static_cast<std::uint64_t>(strides[axis]) *
                                                  static_cast<std::uint64_t>(shape[axis]));
  }
  return strides;
}

Shape broadcast(const Shape& a, const Shape& b) {
  const Shape& longer = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  Shape result = longer;
  const std::size_t shift = longer.size() - shorter.size();
  for (std::size_t axis = 0; axis < shorter.size(); ++axis) {
    std::int64_t& length = result[axis + shift];
    if (length == 1) {
      length = shorter[axis];
    } else if (shorter[axis] != 1 && shorter[axis] != length) {
      refuse_argument();
    }
  }
  return result;
}

Shape broadcast_strides(const Shape& array, const Shape& shape) {
  if (array.size() > shape.size()) refuse_argument();
  const Shape own = row_major(array);
  Shape strides(shape.size(), 0);
  const std::size_t shift = shape.size() - array.size();
  for (std::size_t axis = 0; axis < array.size(); ++axis) {
    if (array[axis] == shape[axis + shift]) {
      strides[axis + shift] = own[axis];
    } else if (array[axis] != 1) {
      refuse_argument();
    }
  }
  return strides;
}

std::size_t axis_of(std::int64_t axis, std::int64_t rank) {
  // A tensor without axes is taken for one of length 1.
  const std::int64_t axes = std::max<std::int64_t>(rank, 1);
  if (axis < -axes || axis >= axes) refuse_argument();
  return static_cast<std::size_t>(axis < 0 ? axis + axes : axis);
}

bool is_floating(DType dtype) {
  return tensor::info(dtype).kind == tensor::DTypeKind::floating;
}

double largest_of(DType dtype) {
  return form_of(dtype).largest;
}

double smallest_normal(DType dtype) {
  return std::ldexp(1.0, form_of(dtype).least);
}

double smallest_step(DType dtype) {
  return std::ldexp(1.0, form_of(dtype).least - form_of(dtype).fraction);
}

double round_to(DType dtype, double value) {
  if (!std::isfinite(value) || value == 0) return value;
  const tensor::DTypeKind kind = tensor::info(dtype).kind;
  if (kind == tensor::DTypeKind::boolean) return 1;
  if (kind == tensor::DTypeKind::integer) return std::trunc(value);
  if (dtype == DType::float64) return value;
  const tensor::FloatForm form = form_of(dtype);
  const double rounded = tensor::nearest_in(form, value);
  if (std::fabs(rounded) <= form.largest) return rounded;
  return std::copysign(std::numeric_limits<double>::infinity(), value);
}

void cast_to(Array& array, std::optional<DType> dtype) {
  if (!dtype) return;
  for (double& value : array.values) value = round_to(*dtype, value);
}

double norm_of(std::span<const double> values) {
  double sum = 0;
  for (const double value : values) {
    if (std::isfinite(value)) sum += value * value;
  }
  return std::sqrt(sum);
}

}  // namespace msprobe::diagnosis::replay
