// SPDX-License-Identifier: Apache-2.0
// Is one side of a pair what the other one becomes in its floating-point type? A copy of a model in a
// narrower type differs from it in nearly every element, and yet nothing is wrong with it.
#pragma once

#include <cstdint>
#include <span>

#include "tensor/dtype.hpp"

namespace msprobe::checkpoint {

/// The number in that floating-point type, rounded to the nearest, ties to even, as PyTorch and NumPy do.
/// What is too large becomes infinite, or NaN in a type without infinity.
double rounded_to(double value, tensor::DType dtype);

/// What rounding does not explain.
struct Unrounded {
  bool tried = false;       // both types are floating-point ones, and not the same
  std::uint64_t count = 0;  // of elements
  std::int64_t first = -1;
  bool holds() const { return tried && count == 0; }
};

/// Both sides come in pieces, widened exactly.
class RoundingCheck {
 public:
  /// Types that are the same, or not both floating-point ones, never hold.
  RoundingCheck(tensor::DType first, tensor::DType second);

  void add(std::span<const float> x, std::span<const float> y) { add_pieces(x, y); }
  void add(std::span<const double> x, std::span<const double> y) { add_pieces(x, y); }
  /// Of the way that explains more.
  Unrounded result() const;

 private:
  template <typename T>
  void add_pieces(std::span<const T> x, std::span<const T> y);

  tensor::DType first_;
  tensor::DType second_;
  std::int64_t seen_ = 0;
  Unrounded first_to_second_;
  Unrounded second_to_first_;
  Unrounded both_;  // of one number, which neither side may have: float16 and bfloat16
};

}  // namespace msprobe::checkpoint
