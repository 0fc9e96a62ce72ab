// SPDX-License-Identifier: Apache-2.0
// Checks whether one side of a pair is the other side, cast to a narrower type on its way to its stored type.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tensor/dtype.hpp"

namespace msprobe::checkpoint {

/// Both sides arrive in pieces, widened exactly. The check never holds for integers.
class CastCheck {
 public:
  CastCheck(tensor::DType first, tensor::DType second);

  void add(std::span<const float> x, std::span<const float> y) { add_pieces(x, y); }
  void add(std::span<const double> x, std::span<const double> y) { add_pieces(x, y); }
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
  void add_pieces(std::span<const T> x, std::span<const T> y);
  template <typename T>
  bool holds(Cast& cast, std::span<const T> from, std::span<const T> to) const;

  tensor::DType first_;
  tensor::DType second_;
  std::vector<Cast> casts_;  // the casts that hold so far
};

}  // namespace msprobe::checkpoint
