// SPDX-License-Identifier: Apache-2.0
// Checks large products: it multiplies the recorded output and the expected one by a few vectors of signs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "diagnosis/replay/product.hpp"

namespace msprobe::diagnosis::replay {

constexpr std::size_t kSigns = 8;

/// A row times each vector of signs.
using SignedSums = std::array<double, kSigns>;

/// Element `column` of each vector of signs, 1 or -1: the same in every run.
SignedSums signs_of(std::size_t column);

inline double at(const Matrices& matrices, std::size_t batch, std::size_t row, std::size_t column) {
  return matrices.array
      ->values[static_cast<std::size_t>(matrices.batch[batch] + matrices.row[row] + matrices.column[column])];
}

/// The norms of the numbers that are multiplied.
struct Norms {
  double left = 0;
  double right = 0;
  double added = 0;
};

/// `Expected::sizes`: the norms of the operands bound the sums of absolute products. Sums of numbers of
/// either sign, added one after the other, lose half of that to rounding.
double product_sizes(const Arguments& arguments, const Product& product, const Norms& norms);
double product_sizes(const Arguments& arguments, const Product& product);

/// The distance where inputs are finite and the output is not: it is wrong, unless it may be beyond the range
/// of its type (NoStatement). `bound`: no element of the product is larger.
Expected::Distance not_finite(const Arguments& arguments, double bound);

/// Checks a product of operands that are in memory, in any order of their axes.
Results signed_product(Arguments& arguments, const Product& product);

/// Whether both operands and the output are whole matrices, one after the other as they are stored (the right
/// one perhaps transposed), and the operands have not been read yet.
bool can_be_streamed(const Product& product);
/// Checks a product of operands that are read once, in their order. Only the sums of the right one stay in
/// memory.
Results streamed_product(Arguments& arguments, const Product& product);

}  // namespace msprobe::diagnosis::replay
