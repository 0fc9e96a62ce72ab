// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/replay/product.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "support/parallel.hpp"

namespace msprobe::diagnosis::replay {
namespace {

constexpr std::uint64_t kComputed = std::uint64_t{1} << 24;
constexpr std::size_t kSigns = 8;

double at(const Matrices& matrices, std::size_t batch, std::size_t row, std::size_t column) {
  return matrices.array
      ->values[static_cast<std::size_t>(matrices.batch[batch] + matrices.row[row] + matrices.column[column])];
}

std::uint64_t times(std::uint64_t a, std::uint64_t b) {
  std::uint64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result)) throw NoStatement(Status::too_large);
  return result;
}

/// Norms of what is multiplied bound the sums of absolute products. Half of it is what sums of numbers of
/// either sign lose to rounding, one after the other.
double product_sizes(const Arguments& arguments, const Product& product, std::size_t batches) {
  const auto norm = [&](const Matrices& matrices) {
    const std::size_t rows = matrices.row.size();
    std::vector<double> squares(batches * rows);
    parallel_blocks(squares.size(), [&](std::size_t i) {
      for (std::size_t j = 0; j < matrices.column.size(); ++j) {
        const double x = at(matrices, i / rows, i % rows, j);
        if (std::isfinite(x)) squares[i] += x * x;
      }
    });
    return std::sqrt(std::accumulate(squares.begin(), squares.end(), 0.0));
  };
  double sizes = 0.5 * std::fabs(product.alpha) * norm(product.left) * norm(product.right) /
                 std::sqrt(static_cast<double>(std::max<std::size_t>(batches, 1)));
  // The product may be rounded to the type before something is added to it.
  if (product.added.array != nullptr && product.beta != 0) {
    sizes +=
        std::fabs(product.beta) * norm(product.added) * unit_roundoff(arguments.output(0).dtype) / 0x1p-24;
  }
  return sizes;
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
        // With beta 0 what is added does not count, not even NaN.
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

/// 1 or -1, the same in every run.
double sign_of(std::uint64_t number) {
  number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9U;
  number = (number ^ (number >> 27)) * 0x94d049bb133111ebU;
  return ((number ^ (number >> 31)) & 1U) != 0 ? 1 : -1;
}

bool is_finite(const Array& array) {
  return std::all_of(array.values.begin(), array.values.end(), [](double x) { return std::isfinite(x); });
}

double largest_magnitude(const Array& array) {
  double largest = 0;
  for (const double x : array.values) largest = std::max(largest, std::fabs(x));
  return largest;
}

class SignedProduct {
 public:
  SignedProduct(Arguments& arguments, const Product& product, std::size_t batches)
      : arguments_(arguments), product_(product), batches_(batches), recorded_(arguments.recorded(0)) {
    if (recorded_.shape != product.shape) refuse_argument();
    const std::size_t columns = product.right.column.size();
    signs_ = arguments.workspace().make({static_cast<std::int64_t>(columns * kSigns)});
    for (std::size_t i = 0; i < signs_.size(); ++i) signs_.values[i] = sign_of((i + 1) * 0x9e3779b97f4a7c15U);
  }

  Expected::Distance measure() {
    if (!is_finite(*product_.left.array) || !is_finite(*product_.right.array) ||
        (product_.added.array != nullptr && !is_finite(*product_.added.array))) {
      throw NoStatement(Status::too_large);
    }
    if (!is_finite(recorded_)) return not_finite();
    double difference = 0;
    double norm = 0;
    for (std::size_t b = 0; b < batches_; ++b) add_batch(b, difference, norm);
    return {std::sqrt(difference / kSigns), std::sqrt(norm / kSigns)};
  }

 private:
  /// Finite numbers went in. What came out is wrong, unless it may be beyond the range of its type.
  Expected::Distance not_finite() const {
    double bound = std::fabs(product_.alpha) * largest_magnitude(*product_.left.array) *
                   largest_magnitude(*product_.right.array) *
                   static_cast<double>(product_.left.column.size());
    if (product_.added.array != nullptr)
      bound += std::fabs(product_.beta) * largest_magnitude(*product_.added.array);
    if (bound >= largest_of(recorded_.dtype)) throw NoStatement(Status::too_large);
    return {std::numeric_limits<double>::infinity(), 1};
  }

  using Sums = std::array<double, kSigns>;

  /// A row of matrices times the signs.
  Sums times_signs(const Matrices& matrices, std::size_t batch, std::size_t row) const {
    Sums sums{};
    const std::int64_t start = matrices.batch[batch] + matrices.row[row];
    for (std::size_t n = 0; n < matrices.column.size(); ++n) {
      const double x = matrices.array->values[static_cast<std::size_t>(start + matrices.column[n])];
      for (std::size_t s = 0; s < kSigns; ++s) sums[s] += x * signs_.values[n * kSigns + s];
    }
    return sums;
  }

  void add_batch(std::size_t b, double& difference, double& norm) {
    const std::size_t depth = product_.left.column.size();
    const std::size_t rows = product_.left.row.size();
    std::vector<Sums> right(depth);
    parallel_blocks(depth, [&](std::size_t k) { right[k] = times_signs(product_.right, b, k); });
    Matrices output = product_.output;
    output.array = &recorded_;
    std::vector<std::array<double, 2>> squares(rows);
    parallel_blocks(rows, [&](std::size_t m) {
      Sums sums{};
      for (std::size_t k = 0; k < depth; ++k) {
        const double x = at(product_.left, b, m, k);
        for (std::size_t s = 0; s < kSigns; ++s) sums[s] += x * right[k][s];
      }
      Sums added{};
      if (product_.added.array != nullptr && product_.beta != 0) added = times_signs(product_.added, b, m);
      const Sums got = times_signs(output, b, m);
      for (std::size_t s = 0; s < kSigns; ++s) {
        const double expected = product_.alpha * sums[s] + product_.beta * added[s];
        squares[m][0] += (got[s] - expected) * (got[s] - expected);
        squares[m][1] += expected * expected;
      }
    });
    for (const auto& [of_difference, of_product] : squares) {
      difference += of_difference;
      norm += of_product;
    }
  }

  Arguments& arguments_;
  const Product& product_;
  std::size_t batches_;
  Array recorded_;
  Array signs_;
};

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

Results replay_product(Arguments& arguments, const Product& product) {
  const std::size_t batches = product.output.batch.size();
  const std::uint64_t rows = product.left.row.size();
  const std::uint64_t depth = product.left.column.size();
  const std::uint64_t columns = product.right.column.size();
  const std::uint64_t steps = times(times(times(rows, depth), columns), batches);
  const std::uint64_t elements =
      times(batches, times(rows, depth) + times(depth, columns) + times(rows, columns));
  if (steps <= kComputed) {
    arguments.workspace().work(steps + elements);
    Array value = compute_product(arguments, product, batches);
    return only(std::move(value), product_sizes(arguments, product, batches));
  }
  arguments.workspace().work(times(elements, kSigns + 1));
  Results results(1);
  results[0].distance = SignedProduct(arguments, product, batches).measure();
  results[0].sizes = product_sizes(arguments, product, batches);
  return results;
}

}  // namespace msprobe::diagnosis::replay
