// SPDX-License-Identifier: Apache-2.0
#include "formats/matrix_product.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "formats/element_values.hpp"
#include "support/error.hpp"

namespace msprobe::formats_matrix_product_test {

using namespace msprobe;
using namespace msprobe::formats;
using doctest::Contains;
using tensor::DType;

namespace {

using Shape = std::vector<std::int64_t>;
using Values = std::vector<double>;

/// Counting from 1.
Elements counting(const Shape& shape, DType dtype = DType::float32) {
  std::int64_t count = 1;
  for (const std::int64_t length : shape) count *= length;
  Elements elements{.shape = shape, .values = Values(static_cast<std::size_t>(count)), .dtype = dtype};
  std::iota(elements.values.begin(), elements.values.end(), 1.0);
  return elements;
}

StoredTensor stored(DType dtype, const std::vector<std::byte>& bytes, const Shape& shape) {
  StoredTensor tensor;
  tensor.dtype = dtype;
  tensor.shape = shape;
  tensor.strides = row_major_strides(shape);
  tensor.storage = memory_source(bytes, "x.pt");
  return tensor;
}

}  // namespace

TEST_CASE("a product of tensors is that of numpy.matmul") {
  const Elements plain = multiply(counting({2, 3}), counting({3, 2}));
  CHECK(plain.shape == Shape{2, 2});
  CHECK(plain.values == Values{22, 28, 49, 64});
  // A vector is a row on the left and a column on the right, and that axis is gone.
  const Elements row = multiply(counting({3}), counting({3, 2}));
  CHECK(row.shape == Shape{2});
  CHECK(row.values == Values{22, 28});
  const Elements column = multiply(counting({2, 3}), counting({3}));
  CHECK(column.shape == Shape{2});
  CHECK(column.values == Values{14, 32});
  const Elements number = multiply(counting({3}), counting({3}));
  CHECK(number.shape.empty());
  CHECK(number.values == Values{14});
}

TEST_CASE("axes before the last two of a product are broadcast") {
  const Elements both = multiply(counting({2, 1, 1, 2}), counting({3, 2, 1}));
  CHECK(both.shape == Shape{2, 3, 1, 1});
  CHECK(both.values == Values{5, 11, 17, 11, 25, 39});
  const Elements shared = multiply(counting({2, 2, 2}), counting({2, 2}));
  CHECK(shared.values == Values{7, 10, 15, 22, 23, 34, 31, 46});
}

TEST_CASE("a product has as many rows and columns as are asked for, whatever the blocks") {
  const std::int64_t rows = 21;
  const std::int64_t columns = 1100;
  Elements left = counting({rows, 3});
  Elements right{.shape = {3, columns}, .values = Values(3 * columns), .dtype = DType::float32};
  for (std::int64_t i = 0; i < 3 * columns; ++i)
    right.values[static_cast<std::size_t>(i)] = static_cast<double>(i % 7);
  const Elements product = multiply(left, right);
  for (const std::int64_t row : {0, 7, 8, 20}) {
    for (const std::int64_t column : {0, 511, 512, 1099}) {
      double sum = 0;
      for (std::int64_t k = 0; k < 3; ++k)
        sum += static_cast<double>(row * 3 + k + 1) * static_cast<double>((k * columns + column) % 7);
      CHECK(product.values[static_cast<std::size_t>(row * columns + column)] == sum);
    }
  }
}

TEST_CASE("a product keeps NaN and infinities where its terms have them") {
  Elements left = counting({2, 2});
  left.values[0] = std::numeric_limits<double>::quiet_NaN();
  left.values[3] = std::numeric_limits<double>::infinity();
  const Elements product = multiply(left, counting({2, 1}));
  CHECK(std::isnan(product.values[0]));
  CHECK(product.values[1] == std::numeric_limits<double>::infinity());
}

TEST_CASE("what is no product of matrices is refused with both shapes") {
  const auto refused = [](const Shape& left, const Shape& right, const char* reason) {
    CHECK_THROWS_WITH_AS(multiply(counting(left), counting(right)), Contains(reason), FormatError);
  };
  refused({2, 3}, {2, 3}, "[2, 3] times [2, 3]: the shapes do not fit");
  refused({2, 2, 2}, {3, 2, 2}, "[2, 2, 2] times [3, 2, 2]: the shapes do not fit");
  refused({}, {2, 2}, "[] times [2, 2]: a scalar is not a matrix");
  refused({70000, 1}, {1, 70000}, "the product is too large");
  Elements nothing{.shape = {0, 3}, .values = {}};
  CHECK(multiply(nothing, counting({3, 2})).shape == Shape{0, 2});
  // The sum of no terms is 0.
  CHECK(multiply({.shape = {1, 0}, .values = {}}, {.shape = {0, 2}, .values = {}}).values == Values{0, 0});
}

TEST_CASE("a product is stored in the type that NumPy has for it") {
  const auto type_of = [](DType a, DType b) {
    return store(multiply(counting({1, 1}, a), counting({1, 1}, b)), "x").dtype;
  };
  CHECK(type_of(DType::float16, DType::float16) == DType::float16);
  CHECK(type_of(DType::float16, DType::float32) == DType::float32);
  CHECK(type_of(DType::bfloat16, DType::bfloat16) == DType::float32);
  CHECK(type_of(DType::float32, DType::float64) == DType::float64);
  CHECK(type_of(DType::int64, DType::float32) == DType::float64);
  const Elements thirds{.shape = {3}, .values = {1.0 / 3, 65519, 65520}, .dtype = DType::float16};
  ValueReader halves(store(thirds, "x"));
  const auto values = halves.read(3);
  CHECK(Values(values.begin(), values.end()) ==
        Values{0.333251953125, 65504, std::numeric_limits<double>::infinity()});
}

TEST_CASE("elements behind the valid rows are read as 0") {
  std::vector<std::byte> bytes(6, std::byte{5});
  const StoredTensor tensor = stored(DType::int8, bytes, {3, 2});
  CHECK(read_elements(tensor).values == Values{5, 5, 5, 5, 5, 5});
  CHECK(read_elements(tensor, 1).values == Values{5, 5, 0, 0, 0, 0});
  CHECK(read_elements(tensor, 7).values == Values{5, 5, 5, 5, 5, 5});
  CHECK(read_elements(tensor, -1).values == Values{0, 0, 0, 0, 0, 0});
  CHECK(read_elements(stored(DType::int8, {}, {0, 2}), 1).values.empty());
}

TEST_CASE("elements that are not multiplied are refused before they are read") {
  CHECK_THROWS_WITH_AS(read_elements(stored(DType::complex64, std::vector<std::byte>(8), {1})),
                       "x.pt: complex elements are not multiplied", FormatError);
  StoredTensor huge = stored(DType::int8, std::vector<std::byte>(1), {1 << 13, (1 << 13) + 1});
  huge.strides = {0, 0};
  CHECK_THROWS_WITH_AS(read_elements(huge), Contains("at most 67,108,864 are multiplied"), FormatError);
}

}  // namespace msprobe::formats_matrix_product_test
