// SPDX-License-Identifier: Apache-2.0
#include "formats/joined_tensor.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "formats/element_values.hpp"
#include "support/error.hpp"

namespace msprobe::formats_joined_tensor_test {

using namespace msprobe;
using namespace msprobe::formats;
using doctest::Contains;

namespace {

using Shape = std::vector<std::int64_t>;

/// int32 counting from `first`.
StoredTensor counting(const Shape& shape, std::int32_t first) {
  StoredTensor tensor;
  tensor.dtype = tensor::DType::int32;
  tensor.shape = shape;
  tensor.strides = row_major_strides(shape);
  std::vector<std::int32_t> values(static_cast<std::size_t>(tensor.numel()));
  std::iota(values.begin(), values.end(), first);
  std::vector<std::byte> bytes(values.size() * sizeof(std::int32_t));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  tensor.storage = memory_source(std::move(bytes));
  return tensor;
}

std::vector<double> values_of(const StoredTensor& tensor) {
  ValueReader reader(tensor);
  std::vector<double> out;
  while (reader.remaining() > 0) {
    for (const double value : reader.read(3)) out.push_back(value);
  }
  return out;
}

}  // namespace

TEST_CASE("joined tensors stand side by side or one above the other") {
  const StoredTensor below = join_tensors({counting({2, 3}, 0), counting({1, 3, 3}, 10)}, 0);
  CHECK(below.shape == Shape{5, 3});
  CHECK(values_of(below) == std::vector<double>{0, 1, 2, 3, 4, 5, 10, 11, 12, 13, 14, 15, 16, 17, 18});
  const StoredTensor beside = join_tensors({counting({2, 3}, 0), counting({2, 1, 2}, 10)}, 1);
  CHECK(beside.shape == Shape{2, 5});
  CHECK(values_of(beside) == std::vector<double>{0, 1, 2, 10, 11, 3, 4, 5, 12, 13});
  // A single row has no second axis.
  CHECK(values_of(join_tensors({counting({1, 2}, 0), counting({1, 3}, 5)}, 1)) ==
        std::vector<double>{0, 1, 5, 6, 7});
}

TEST_CASE("a tensor that does not lie in one piece is joined by its logical order") {
  StoredTensor turned = counting({3, 2}, 0);
  turned.shape = {2, 3};
  turned.strides = {1, 2};
  // 0 2 4 / 1 3 5, and a second one beside it.
  CHECK(values_of(join_tensors({turned, counting({2, 2}, 10)}, 1)) ==
        std::vector<double>{0, 2, 4, 10, 11, 1, 3, 5, 12, 13});
}

TEST_CASE("tensors that do not fit are refused") {
  CHECK_THROWS_WITH_AS(join_tensors({counting({2, 3}, 0), counting({3, 3}, 0)}, 1), Contains("shapes"),
                       FormatError);
  StoredTensor other = counting({2, 3}, 0);
  other.dtype = tensor::DType::float32;
  CHECK_THROWS_WITH_AS(join_tensors({counting({2, 3}, 0), other}, 1), Contains("types"), FormatError);
  CHECK_THROWS_AS(join_tensors({}, 0), FormatError);
  CHECK(join_tensors({counting({0, 3}, 0), counting({2, 3}, 0)}, 0).shape == Shape{2, 3});
}

}  // namespace msprobe::formats_joined_tensor_test
