// SPDX-License-Identifier: Apache-2.0
// Arrays of doubles without gaps, and what operations need to walk over several of them at once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "diagnosis/replay/replay.hpp"
#include "formats/element_values.hpp"
#include "tensor/dtype.hpp"

namespace msprobe::diagnosis::replay {

using Shape = std::vector<std::int64_t>;

/// Ends the replay of a call, because nothing can be said about it.
class NoStatement : public std::exception {
 public:
  explicit NoStatement(Status status, std::string reason = {})
      : status_(status), reason_(std::move(reason)) {}
  Status status() const { return status_; }
  const std::string& reason() const { return reason_; }
  const char* what() const noexcept override { return "no statement"; }

 private:
  Status status_;
  std::string reason_;  // of Status::broken_off
};

[[noreturn]] void refuse_argument();

/// Product of the lengths; NoStatement if it does not fit.
std::int64_t count_of(const Shape& shape);

struct Array {
  Shape shape;
  std::vector<double> values;
  tensor::DType dtype = tensor::DType::float64;  // of the recorded tensor that it is
  const Tensor* unread = nullptr;                // where the values still have to be read from

  std::size_t size() const { return values.size(); }
  std::int64_t rank() const { return static_cast<std::int64_t>(shape.size()); }
};

/// The values of a recorded tensor, piece by piece. Ends the replay if they do not match the entry, if the
/// tensor has no values, or if a double cannot hold them.
class ValueStream {
 public:
  explicit ValueStream(const Tensor& tensor);

  bool at_end() const { return !reader_ || reader_->remaining() == 0; }
  /// The next ones; valid until the next call.
  std::span<const double> next();

 private:
  std::optional<formats::ValueReader> reader_;
  bool is_integer_ = false;
};

/// Hands out memory and time for one call, and refuses what is beyond the limits.
class Workspace {
 public:
  explicit Workspace(const ReplayLimits& limits) : limits_(limits) {}
  void take(std::uint64_t elements);
  /// `steps` multiplications are about to be done.
  void work(std::uint64_t steps);
  std::uint64_t work_left() const { return limits_.work; }
  Array make(Shape shape, double fill = 0);
  Array load(const Tensor& tensor);
  /// An array with shape and type only; `read` adds the values.
  Array describe(const Tensor& tensor) const;
  void read(Array& array);

 private:
  ReplayLimits limits_;
};

/// The common shape of arrays that are broadcast; NoStatement if they have no common shape.
Shape broadcast(const Shape& a, const Shape& b);
/// Distance in elements from one index to the next along each axis of `shape`, for an array that is broadcast
/// to it: 0 along axes that it does not have.
Shape broadcast_strides(const Shape& array, const Shape& shape);
Shape row_major(const Shape& shape);

/// An axis as Python counts it, from the end if negative; NoStatement if it does not exist.
std::size_t axis_of(std::int64_t axis, std::int64_t rank);

/// Calls visit(index, {element of each}) in order of the elements of `shape`.
template <std::size_t N, typename Visit>
void walk(const Shape& shape, const std::array<const Array*, N>& arrays, Visit&& visit) {
  std::array<Shape, N> strides;
  for (std::size_t i = 0; i < N; ++i) strides[i] = broadcast_strides(arrays[i]->shape, shape);
  const auto total = static_cast<std::size_t>(count_of(shape));
  if (total == 0) return;
  const std::size_t rank = shape.size();
  const auto inner = static_cast<std::size_t>(rank == 0 ? 1 : shape[rank - 1]);
  Shape index(rank, 0);
  std::array<std::int64_t, N> offset{};
  std::array<double, N> element{};
  for (std::size_t at = 0; at < total; at += inner) {
    for (std::size_t column = 0; column < inner; ++column) {
      for (std::size_t i = 0; i < N; ++i) {
        const std::int64_t step = rank == 0 ? 0 : strides[i][rank - 1];
        element[i] =
            arrays[i]->values[static_cast<std::size_t>(offset[i] + static_cast<std::int64_t>(column) * step)];
      }
      visit(at + column, element);
    }
    for (std::size_t axis = rank < 1 ? 0 : rank - 1; axis-- > 0;) {
      ++index[axis];
      for (std::size_t i = 0; i < N; ++i) offset[i] += strides[i][axis];
      if (index[axis] < shape[axis]) break;
      for (std::size_t i = 0; i < N; ++i) offset[i] -= strides[i][axis] * shape[axis];
      index[axis] = 0;
    }
  }
}

using tensor::unit_roundoff;
/// The largest finite number.
double largest_of(tensor::DType dtype);
/// The smallest normal number; smallest_step() is the distance between the numbers below it.
double smallest_normal(tensor::DType dtype);
double smallest_step(tensor::DType dtype);
bool is_floating(tensor::DType dtype);
/// The nearest number of the type, ties to even.
double round_to(tensor::DType dtype, double value);

/// Rounds to the type that an input is cast to before: that is part of the operation.
void cast_to(Array& array, std::optional<tensor::DType> dtype);
double norm_of(std::span<const double> values);

}  // namespace msprobe::diagnosis::replay
