// SPDX-License-Identifier: Apache-2.0
// Checks whether one side of a pair is the other side, rounded to its floating-point type. A copy of a model
// in a narrower type differs from it in nearly every element, and yet nothing is wrong with it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

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

  template <typename T>
  void add(std::span<const T> x, std::span<const T> y);
  /// The result of the direction that explains more.
  Unrounded result() const;

 private:
  tensor::DType first_;
  tensor::DType second_;
  std::int64_t seen_ = 0;
  Unrounded first_to_second_;
  Unrounded second_to_first_;
  Unrounded both_;  // both are one number, which neither may hold: float16 and bfloat16
};

/// Checks whether one side of a pair is the other side, cast to a narrower type on its way to its stored
/// type. Both sides arrive in pieces, widened exactly. The check never holds for integers.
class CastCheck {
 public:
  CastCheck(tensor::DType first, tensor::DType second);

  template <typename T>
  void add(std::span<const T> x, std::span<const T> y);
  /// Returns the casts that explain every element, such as "rounded to bfloat16, then to float16". The text
  /// is about the second side unless it names the first. It is empty if no cast explains every element.
  std::string text() const;

 private:
  struct Cast {
    bool to_second;
    tensor::DType between;
    bool cuts;                        // cuts the last bits off, as a copy of the upper half of a float32 does
    std::vector<double> values = {};  // some of the values that the cast gave
  };

  template <typename T>
  bool holds(Cast& cast, std::span<const T> from, std::span<const T> to) const;

  tensor::DType first_;
  tensor::DType second_;
  std::vector<Cast> casts_;  // the casts that hold so far
};

}  // namespace msprobe::checkpoint
