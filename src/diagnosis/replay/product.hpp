// SPDX-License-Identifier: Apache-2.0
// The product of two arrays of matrices, which is what linear, matmul, einsum and convolutions are.
#pragma once

#include <cstdint>
#include <vector>

#include "diagnosis/replay/operation.hpp"

namespace msprobe::diagnosis::replay {

using Offsets = std::vector<std::int64_t>;

/// Element (b, i, j) is element `batch[b] + row[i] + column[j]` of the array: any order of axes, broadcast
/// ones, and windows that overlap.
struct Matrices {
  const Array* array = nullptr;
  Offsets batch;
  Offsets row;
  Offsets column;
};

/// The offsets of the axes `axes` of an array of this shape, in row-major order of these axes.
Offsets axis_offsets(const Shape& shape, const std::vector<std::size_t>& axes);
/// The same with the strides given; a stride may be 0.
Offsets offsets_of(const Shape& lengths, const Shape& strides);

/// output = alpha * left * right + beta * added.
struct Product {
  Matrices left;   // rows m, columns k
  Matrices right;  // rows k, columns n
  Matrices added;  // rows m, columns n; no array: nothing is added
  Matrices output;
  Shape shape;  // of the output
  double alpha = 1;
  double beta = 1;
};

/// Computes small products. For a large one, it multiplies the recorded output (`arguments.output(0)`) and
/// the product by a few vectors of signs from the right: (A B) v = A (B v) takes time linear in the operands,
/// and the expected square of the difference is that of the matrices. `left` and `right` are what `product`
/// points to; operands that are still unread stay so where they can be multiplied as they are read.
Results replay_product(Arguments& arguments, const Product& product, Array& left, Array& right);

}  // namespace msprobe::diagnosis::replay
