// SPDX-License-Identifier: Apache-2.0
// Large products: what was recorded and what should have been, each times a few vectors of signs.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "diagnosis/imports.hpp"
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

/// Of the numbers that are multiplied.
struct Norms {
  double left = 0;
  double right = 0;
  double added = 0;
};

/// `Expected::sizes`: norms of what is multiplied bound the sums of absolute products. Half of it is what
/// sums of numbers of either sign lose to rounding, one after the other.
double product_sizes(const Arguments& arguments, const Product& product, const Norms& norms);
double product_sizes(const Arguments& arguments, const Product& product);

/// Finite numbers went in, something else came out: wrong, unless it may be beyond the range of its type
/// (NoStatement). `bound`: what no element of the product is larger than.
Expected::Distance not_finite(const Arguments& arguments, double bound);

/// From operands that are in memory, in any order of their axes.
Results signed_product(Arguments& arguments, const Product& product);

/// Are both operands and the output whole matrices, one after the other as they are stored (the right one
/// perhaps transposed), and the operands still to be read?
bool can_be_streamed(const Product& product);
/// From operands that are read once, in their order; of them only the right one's sums stay in memory.
Results streamed_product(Arguments& arguments, const Product& product);

}  // namespace msprobe::diagnosis::replay
