// SPDX-License-Identifier: Apache-2.0
// Is one side of a pair the other one, cast to a narrower type on its way to the type that it is stored in?
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tensor/dtype.hpp"

namespace msprobe::checkpoint {

/// Both sides come in pieces, widened exactly. Integers never hold.
class CastCheck {
 public:
  CastCheck(tensor::DType first, tensor::DType second);

  void add(std::span<const float> x, std::span<const float> y) { add_pieces(x, y); }
  void add(std::span<const double> x, std::span<const double> y) { add_pieces(x, y); }
  /// "rounded to bfloat16, then to float16": what explains every element, said of the second unless it names
  /// the first; empty if nothing does.
  std::string text() const;

 private:
  struct Cast {
    bool to_second;
    tensor::DType between;
    bool cuts;  // leaves the last bits out, as a copy of the upper half of a float32 does
    std::vector<double> values = {};  // some of those that came out
  };

  template <typename T>
  void add_pieces(std::span<const T> x, std::span<const T> y);
  template <typename T>
  bool holds(Cast& cast, std::span<const T> from, std::span<const T> to) const;

  tensor::DType first_;
  tensor::DType second_;
  std::vector<Cast> casts_;  // that hold so far
};

}  // namespace msprobe::checkpoint
