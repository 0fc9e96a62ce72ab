// SPDX-License-Identifier: Apache-2.0
// Checks whether one side of a pair is the other side, rounded to its floating-point type. A copy of a model
// in a narrower type differs from it in nearly every element, and yet nothing is wrong with it.
#pragma once

#include <cstdint>
#include <span>

#include "tensor/dtype.hpp"

namespace msprobe::checkpoint {

/// The number rounded to that floating-point type: to the nearest, ties to even, as PyTorch and NumPy do. A
/// number that is too large becomes infinite, or NaN in a type without infinity.
double rounded_to(double value, tensor::DType dtype);

/// Elements that rounding does not explain.
struct Unrounded {
  bool tried = false;       // both types are floating-point ones, and not the same
  std::uint64_t count = 0;  // of elements
  std::int64_t first = -1;
  bool holds() const { return tried && count == 0; }
};

/// Both sides arrive in pieces, widened exactly.
class RoundingCheck {
 public:
  /// The check never holds for equal types, or if one of them is no floating-point type.
  RoundingCheck(tensor::DType first, tensor::DType second);

  void add(std::span<const float> x, std::span<const float> y) { add_pieces(x, y); }
  void add(std::span<const double> x, std::span<const double> y) { add_pieces(x, y); }
  /// The result of the direction that explains more.
  Unrounded result() const;

 private:
  template <typename T>
  void add_pieces(std::span<const T> x, std::span<const T> y);

  tensor::DType first_;
  tensor::DType second_;
  std::int64_t seen_ = 0;
  Unrounded first_to_second_;
  Unrounded second_to_first_;
  Unrounded both_;  // both are one number, which neither may hold: float16 and bfloat16
};

}  // namespace msprobe::checkpoint
