// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/replay/signed_product.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "support/parallel.hpp"

namespace msprobe::diagnosis::replay {
namespace {

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

double norm_of_matrices(const Matrices& matrices, std::size_t batches) {
  const std::size_t rows = matrices.row.size();
  std::vector<double> squares(batches * rows);
  parallel_blocks(squares.size(), [&](std::size_t i) {
    for (std::size_t j = 0; j < matrices.column.size(); ++j) {
      const double x = at(matrices, i / rows, i % rows, j);
      if (std::isfinite(x)) squares[i] += x * x;
    }
  });
  return std::sqrt(std::accumulate(squares.begin(), squares.end(), 0.0));
}

class SignedProduct {
 public:
  SignedProduct(Arguments& arguments, const Product& product)
      : arguments_(arguments), product_(product), recorded_(arguments.recorded(0)) {
    if (recorded_.shape != product.shape) refuse_argument();
    arguments.workspace().take(product.right.column.size() * kSigns);
    signs_.reserve(product.right.column.size());
    for (std::size_t n = 0; n < product.right.column.size(); ++n) signs_.push_back(signs_of(n));
  }

  Expected::Distance measure() {
    if (!is_finite(*product_.left.array) || !is_finite(*product_.right.array) ||
        (product_.added.array != nullptr && !is_finite(*product_.added.array))) {
      throw NoStatement(Status::too_large);
    }
    if (!is_finite(recorded_)) return not_finite(arguments_, bound());
    double difference = 0;
    double norm = 0;
    for (std::size_t b = 0; b < product_.output.batch.size(); ++b) add_batch(b, difference, norm);
    return {std::sqrt(difference / kSigns), std::sqrt(norm / kSigns)};
  }

 private:
  double bound() const {
    double bound = std::fabs(product_.alpha) * largest_magnitude(*product_.left.array) *
                   largest_magnitude(*product_.right.array) *
                   static_cast<double>(product_.left.column.size());
    if (product_.added.array != nullptr)
      bound += std::fabs(product_.beta) * largest_magnitude(*product_.added.array);
    return bound;
  }

  SignedSums times_signs(const Matrices& matrices, std::size_t batch, std::size_t row) const {
    SignedSums sums{};
    const std::int64_t start = matrices.batch[batch] + matrices.row[row];
    for (std::size_t n = 0; n < matrices.column.size(); ++n) {
      const double x = matrices.array->values[static_cast<std::size_t>(start + matrices.column[n])];
      for (std::size_t s = 0; s < kSigns; ++s) sums[s] += x * signs_[n][s];
    }
    return sums;
  }

  void add_batch(std::size_t b, double& difference, double& norm) {
    const std::size_t depth = product_.left.column.size();
    const std::size_t rows = product_.left.row.size();
    std::vector<SignedSums> right(depth);
    parallel_blocks(depth, [&](std::size_t k) { right[k] = times_signs(product_.right, b, k); });
    Matrices output = product_.output;
    output.array = &recorded_;
    std::vector<std::array<double, 2>> squares(rows);
    parallel_blocks(rows, [&](std::size_t m) {
      SignedSums sums{};
      for (std::size_t k = 0; k < depth; ++k) {
        const double x = at(product_.left, b, m, k);
        for (std::size_t s = 0; s < kSigns; ++s) sums[s] += x * right[k][s];
      }
      SignedSums added{};
      if (product_.added.array != nullptr && product_.beta != 0) added = times_signs(product_.added, b, m);
      const SignedSums got = times_signs(output, b, m);
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
  Array recorded_;
  std::vector<SignedSums> signs_;
};

}  // namespace

SignedSums signs_of(std::size_t column) {
  SignedSums signs{};
  for (std::size_t s = 0; s < kSigns; ++s)
    signs[s] = sign_of((column * kSigns + s + 1) * 0x9e3779b97f4a7c15U);
  return signs;
}

double product_sizes(const Arguments& arguments, const Product& product, const Norms& norms) {
  const std::size_t batches = std::max<std::size_t>(product.output.batch.size(), 1);
  double sizes =
      0.5 * std::fabs(product.alpha) * norms.left * norms.right / std::sqrt(static_cast<double>(batches));
  // The product may be rounded to the type before something is added to it.
  if (product.added.array != nullptr && product.beta != 0)
    sizes += std::fabs(product.beta) * norms.added * unit_roundoff(arguments.output(0).dtype) / 0x1p-24;
  return sizes;
}

double product_sizes(const Arguments& arguments, const Product& product) {
  const std::size_t batches = product.output.batch.size();
  Norms norms{norm_of_matrices(product.left, batches), norm_of_matrices(product.right, batches)};
  if (product.added.array != nullptr && product.beta != 0)
    norms.added = norm_of_matrices(product.added, batches);
  return product_sizes(arguments, product, norms);
}

Expected::Distance not_finite(const Arguments& arguments, double bound) {
  if (bound >= largest_of(arguments.output(0).dtype)) throw NoStatement(Status::too_large);
  return {std::numeric_limits<double>::infinity(), 1};
}

Results signed_product(Arguments& arguments, const Product& product) {
  Results results(1);
  results[0].distance = SignedProduct(arguments, product).measure();
  results[0].sizes = product_sizes(arguments, product);
  return results;
}

}  // namespace msprobe::diagnosis::replay
