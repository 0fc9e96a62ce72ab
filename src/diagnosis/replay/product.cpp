// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/replay/product.hpp"

#include <algorithm>
#include <cmath>

#include "diagnosis/replay/signed_product.hpp"

namespace msprobe::diagnosis::replay {
namespace {

constexpr std::uint64_t kComputed = std::uint64_t{1} << 24;

std::uint64_t times(std::uint64_t a, std::uint64_t b) {
  std::uint64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) throw NoStatement(Status::too_large);
  return result;
}

Array compute_product(Arguments& arguments, const Product& product, std::size_t batches) {
  const std::size_t rows = product.left.row.size();
  const std::size_t depth = product.left.column.size();
  const std::size_t columns = product.right.column.size();
  Array result = arguments.workspace().make(product.shape);
  Array packed = arguments.workspace().make({static_cast<std::int64_t>(depth * columns)});
  for (std::size_t b = 0; b < batches; ++b) {
    for (std::size_t k = 0; k < depth; ++k) {
      for (std::size_t n = 0; n < columns; ++n) packed.values[k * columns + n] = at(product.right, b, k, n);
    }
    std::vector<double> sums(columns);
    for (std::size_t m = 0; m < rows; ++m) {
      std::fill(sums.begin(), sums.end(), 0.0);
      for (std::size_t k = 0; k < depth; ++k) {
        const double x = at(product.left, b, m, k);
        const double* const right = packed.values.data() + k * columns;
        for (std::size_t n = 0; n < columns; ++n) sums[n] += x * right[n];
      }
      for (std::size_t n = 0; n < columns; ++n) {
        double value = product.alpha * sums[n];
        // With beta 0, the added array does not count, not even its NaN.
        if (product.added.array != nullptr && product.beta != 0) {
          value += product.beta * at(product.added, b, m, n);
        }
        result.values[static_cast<std::size_t>(product.output.batch[b] + product.output.row[m] +
                                               product.output.column[n])] = value;
      }
    }
  }
  return result;
}

}  // namespace

Offsets offsets_of(const Shape& lengths, const Shape& strides) {
  Offsets offsets(1, 0);
  for (std::size_t axis = 0; axis < lengths.size(); ++axis) {
    Offsets longer;
    longer.reserve(offsets.size() * static_cast<std::size_t>(lengths[axis]));
    for (const std::int64_t offset : offsets) {
      for (std::int64_t i = 0; i < lengths[axis]; ++i) longer.push_back(offset + i * strides[axis]);
    }
    offsets = std::move(longer);
  }
  return offsets;
}

Offsets axis_offsets(const Shape& shape, const std::vector<std::size_t>& axes) {
  const Shape all = row_major(shape);
  Shape lengths;
  Shape strides;
  for (const std::size_t axis : axes) {
    lengths.push_back(shape[axis]);
    strides.push_back(all[axis]);
  }
  return offsets_of(lengths, strides);
}

Results replay_product(Arguments& arguments, const Product& product, Array& left, Array& right) {
  const std::size_t batches = product.output.batch.size();
  const std::uint64_t rows = product.left.row.size();
  const std::uint64_t depth = product.left.column.size();
  const std::uint64_t columns = product.right.column.size();
  const std::uint64_t steps = times(times(times(rows, depth), columns), batches);
  const std::uint64_t elements =
      times(batches, times(rows, depth) + times(depth, columns) + times(rows, columns));
  const bool is_large = steps > kComputed;
  arguments.workspace().work(is_large ? times(elements, kSigns + 1) : steps + elements);
  if (is_large && can_be_streamed(product)) return streamed_product(arguments, product);
  arguments.workspace().read(left);
  arguments.workspace().read(right);
  if (is_large) return signed_product(arguments, product);
  Array value = compute_product(arguments, product, batches);
  return only(std::move(value), product_sizes(arguments, product));
}

}  // namespace msprobe::diagnosis::replay
