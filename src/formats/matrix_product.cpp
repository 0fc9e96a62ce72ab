// SPDX-License-Identifier: Apache-2.0
#include "formats/matrix_product.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "formats/element_values.hpp"
#include "support/error.hpp"
#include "support/parallel.hpp"
#include "support/text.hpp"
#include "tensor/convert.hpp"

namespace msprobe::formats {
namespace {

using Shape = std::vector<std::int64_t>;

constexpr std::size_t kReadAtOnce = std::size_t{64} << 10;

/// For floating-point types the result type of NumPy; products of integers are exact up to 2^53.
tensor::DType type_of_product(tensor::DType a, tensor::DType b) {
  using tensor::DType;
  const auto is_narrow = [](DType dtype) {
    return tensor::info(dtype).kind == tensor::DTypeKind::floating && dtype != DType::float64;
  };
  if (a == DType::float16 && b == DType::float16) return DType::float16;
  return is_narrow(a) && is_narrow(b) ? DType::float32 : DType::float64;
}

[[noreturn]] void refuse(const Elements& left, const Elements& right, const char* reason) {
  throw FormatError(
      fmt::format("[{}] times [{}]: {}", fmt::join(left.shape, ", "), fmt::join(right.shape, ", "), reason));
}

std::uint64_t count_of(const Shape& shape) {
  std::uint64_t count = 1;
  for (const std::int64_t length : shape) {
    if (__builtin_mul_overflow(count, static_cast<std::uint64_t>(length), &count)) return UINT64_MAX;
  }
  return count;
}

/// The broadcast shape of the axes before the last two; nothing if the shapes do not fit.
std::optional<Shape> broadcast(const Shape& a, const Shape& b) {
  Shape result = a.size() >= b.size() ? a : b;
  const Shape& shorter = a.size() >= b.size() ? b : a;
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    std::int64_t& length = result[result.size() - shorter.size() + i];
    if (length == 1) {
      length = shorter[i];
    } else if (shorter[i] != 1 && shorter[i] != length) {
      return std::nullopt;
    }
  }
  return result;
}

/// The index of the matrix of `own` that is used at `place` of the broadcast axes.
std::size_t matrix_at(std::size_t place, const Shape& batch, const Shape& own) {
  std::size_t matrix = 0;
  std::size_t step = 1;
  for (std::size_t i = 0; i < own.size(); ++i) {
    const auto length = static_cast<std::size_t>(batch[batch.size() - 1 - i]);
    const auto mine = static_cast<std::size_t>(own[own.size() - 1 - i]);
    if (mine != 1) matrix += place % length * step;
    step *= mine;
    place /= length;
  }
  return matrix;
}

struct Sizes {
  std::size_t rows = 0;
  std::size_t depth = 0;
  std::size_t columns = 0;
};

/// Multiplies a few rows together, so that each value read from the right matrix serves all of them. The
/// terms are added in the order of `depth`, so the result does not depend on the number of threads.
void multiply_rows(const double* left, const double* right, double* out, std::size_t rows,
                   const Sizes& sizes) {
  constexpr std::size_t kColumns = 512;
  for (std::size_t begin = 0; begin < sizes.columns; begin += kColumns) {
    const std::size_t end = std::min(sizes.columns, begin + kColumns);
    for (std::size_t k = 0; k < sizes.depth; ++k) {
      const double* const from = right + k * sizes.columns;
      for (std::size_t row = 0; row < rows; ++row) {
        const double x = left[row * sizes.depth + k];
        double* const to = out + row * sizes.columns;
        for (std::size_t column = begin; column < end; ++column) to[column] += x * from[column];
      }
    }
  }
}

}  // namespace

Elements read_elements(const StoredTensor& tensor, std::optional<std::int64_t> valid_rows) {
  const std::string name = display(tensor.storage->name());
  if (tensor::info(tensor.dtype).kind == tensor::DTypeKind::complex)
    throw FormatError(name, "complex elements are not multiplied");
  const auto count = static_cast<std::uint64_t>(tensor.numel());
  if (count > Elements::kMost) {
    throw FormatError(name, fmt::format("has {} elements, and at most {} are multiplied", human_count(count),
                                        human_count(Elements::kMost)));
  }
  Elements elements{.shape = tensor.shape, .values = {}, .dtype = tensor.dtype};
  elements.values.reserve(static_cast<std::size_t>(count));
  ValueReader reader(tensor);
  while (reader.remaining() > 0) {
    const std::span<const double> piece = reader.read(kReadAtOnce);
    elements.values.insert(elements.values.end(), piece.begin(), piece.end());
  }
  if (valid_rows && count > 0 && !tensor.shape.empty()) {
    const std::int64_t rows = std::clamp<std::int64_t>(*valid_rows, 0, tensor.shape[0]);
    const std::int64_t valid = tensor.numel() / tensor.shape[0] * rows;
    std::fill(elements.values.begin() + valid, elements.values.end(), 0.0);
  }
  return elements;
}

Elements multiply(const Elements& left, const Elements& right) {
  if (left.shape.empty() || right.shape.empty()) refuse(left, right, "a scalar is not a matrix");
  Shape a = left.shape;
  Shape b = right.shape;
  if (a.size() == 1) a.insert(a.begin(), 1);
  if (b.size() == 1) b.push_back(1);
  const Shape a_batch(a.begin(), a.end() - 2);
  const Shape b_batch(b.begin(), b.end() - 2);
  const std::optional<Shape> batch = broadcast(a_batch, b_batch);
  if (a.back() != b[b.size() - 2] || !batch) refuse(left, right, "the shapes do not fit");
  Elements product{.shape = *batch, .values = {}, .dtype = type_of_product(left.dtype, right.dtype)};
  if (left.shape.size() > 1) product.shape.push_back(a[a.size() - 2]);
  if (right.shape.size() > 1) product.shape.push_back(b.back());
  const std::uint64_t count = count_of(product.shape);
  if (count > Elements::kMost) refuse(left, right, "the product is too large");
  product.values.resize(static_cast<std::size_t>(count));
  if (count == 0) return product;
  const Sizes sizes{static_cast<std::size_t>(a[a.size() - 2]), static_cast<std::size_t>(a.back()),
                    static_cast<std::size_t>(b.back())};
  constexpr std::size_t kRows = 8;
  const std::size_t blocks = (sizes.rows + kRows - 1) / kRows;
  parallel_for(count_of(*batch) * blocks, [&](std::size_t i) {
    const std::size_t place = i / blocks;
    const std::size_t first = i % blocks * kRows;
    const std::size_t row = matrix_at(place, *batch, a_batch) * sizes.rows + first;
    multiply_rows(left.values.data() + row * sizes.depth,
                  right.values.data() + matrix_at(place, *batch, b_batch) * sizes.depth * sizes.columns,
                  product.values.data() + (place * sizes.rows + first) * sizes.columns,
                  std::min(kRows, sizes.rows - first), sizes);
  });
  return product;
}

StoredTensor store(const Elements& elements, const std::string& name) {
  using tensor::DType;
  StoredTensor tensor;
  const bool has_own = elements.dtype == DType::float16 || elements.dtype == DType::float32;
  tensor.dtype = has_own ? elements.dtype : DType::float64;
  tensor.shape = elements.shape;
  tensor.strides = row_major_strides(tensor.shape);
  std::vector<std::byte> bytes(elements.values.size() * tensor::info(tensor.dtype).size);
  tensor::from_double(tensor.dtype, elements.values, bytes);
  tensor.storage = memory_source(std::move(bytes), name);
  return tensor;
}

}  // namespace msprobe::formats
