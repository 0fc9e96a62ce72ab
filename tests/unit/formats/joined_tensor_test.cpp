// SPDX-License-Identifier: Apache-2.0
#include "formats/joined_tensor.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>
#include <utility>
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

TEST_CASE("a tensor that is not contiguous is joined by its logical order") {
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

TEST_CASE("shards along an axis that counts, though it is of length 1") {
  const StoredTensor heads = concatenate({counting({2, 1, 2}, 0), counting({2, 1, 2}, 10)}, 1);
  CHECK(heads.shape == Shape{2, 2, 2});
  CHECK(values_of(heads) == std::vector<double>{0, 1, 10, 11, 2, 3, 12, 13});
  CHECK_THROWS_AS(concatenate({counting({2}, 0)}, 1), FormatError);
}

TEST_CASE("shards of what was fused hold a piece of each part") {
  const StoredTensor fused = concatenate({counting({4, 1}, 0), counting({4, 1}, 10)}, 0, 2);
  CHECK(fused.shape == Shape{8, 1});
  CHECK(values_of(fused) == std::vector<double>{0, 1, 10, 11, 2, 3, 12, 13});
  CHECK(values_of(concatenate({counting({2, 2}, 0), counting({2, 2}, 10)}, 1, 2)) ==
        std::vector<double>{0, 10, 1, 11, 2, 12, 3, 13});
  CHECK_THROWS_WITH_AS(concatenate({counting({3}, 0), counting({3}, 0)}, 0, 2), Contains("shapes"),
                       FormatError);
}

TEST_CASE("terms of a sum are added as they are read") {
  const StoredTensor sum = add_tensors({counting({2, 3}, 0), counting({2, 3}, 10), counting({2, 3}, 100)});
  CHECK(sum.dtype == tensor::DType::float64);
  CHECK(values_of(sum) == std::vector<double>{110, 113, 116, 119, 122, 125});
  CHECK_THROWS_AS(add_tensors({counting({2, 3}, 0), counting({3, 2}, 0)}), FormatError);
  CHECK_THROWS_AS(add_tensors({}), FormatError);
  // Longer than what is added at a time, and read from the middle of an element on.
  const StoredTensor many = add_tensors({counting({10000}, 0), counting({10000}, 1)});
  CHECK(values_of(many).back() == 19999);
  std::vector<std::byte> two(16);
  many.storage->read_at(4090 * 8 + 4, two);
  std::vector<std::byte> whole(24);
  many.storage->read_at(4090 * 8, whole);
  CHECK(std::memcmp(two.data(), whole.data() + 4, two.size()) == 0);
}

TEST_CASE("sums of half precision are rounded to it") {
  // Two numbers and their sum, all as NumPy spells their bits.
  struct Case {
    std::uint16_t a, b, sum;
  };
  for (const Case& each : {Case{0x3C00, 0x3C00, 0x4000},     // 1 + 1
                           Case{0x7BFF, 0x7BFF, 0x7C00},     // 65504 + 65504: infinite
                           Case{0x0001, 0x0001, 0x0002},     // the smallest
                           Case{0x03FF, 0x0001, 0x0400},     // to the smallest of full precision
                           Case{0x3C00, 0xBC00, 0x0000},     // 1 - 1
                           Case{0x3C00, 0x1000, 0x3C00},     // 1 + 2^-11: to even
                           Case{0x3C01, 0x1000, 0x3C02},     // the same, up
                           Case{0xC000, 0x3800, 0xBE00}}) {  // -2 + 0.5
    std::vector<StoredTensor> terms;
    for (const std::uint16_t bits : {each.a, each.b}) {
      StoredTensor& term = terms.emplace_back();
      term.dtype = tensor::DType::float16;
      std::vector<std::byte> bytes(sizeof bits);
      std::memcpy(bytes.data(), &bits, sizeof bits);
      term.storage = memory_source(std::move(bytes));
    }
    const StoredTensor sum = add_tensors(terms);
    CHECK(sum.dtype == tensor::DType::float16);
    std::uint16_t bits = 0;
    sum.storage->read_at(0, std::as_writable_bytes(std::span(&bits, 1)));
    CHECK(bits == each.sum);
  }
}

}  // namespace msprobe::formats_joined_tensor_test
