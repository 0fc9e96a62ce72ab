// SPDX-License-Identifier: Apache-2.0
#include "formats/stored_tensor.hpp"

#include <doctest/doctest.h>

#include <cstring>
#include <numeric>
#include <random>
#include <vector>

#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "unit/formats/elements.hpp"

namespace msprobe::formats::stored_tensor_test {
namespace {

using tensor::DType;

// A storage of int32 whose element i is i, so that an element that is read shows its place.
StoredTensor counting(std::size_t count, std::vector<std::int64_t> shape, std::vector<std::int64_t> strides,
                      std::int64_t offset = 0) {
  std::vector<std::int32_t> values(count);
  std::iota(values.begin(), values.end(), 0);
  std::vector<std::byte> bytes(count * 4);
  if (count != 0) std::memcpy(bytes.data(), values.data(), bytes.size());
  return {.dtype = DType::int32,
          .shape = std::move(shape),
          .strides = std::move(strides),
          .offset = offset,
          .storage = memory_source(std::move(bytes))};
}

std::vector<std::int32_t> read(const StoredTensor& tensor, std::size_t piece) {
  ElementReader reader(tensor);
  std::vector<std::int32_t> all;
  while (reader.remaining() > 0) {
    const std::size_t count = std::min(piece, static_cast<std::size_t>(reader.remaining()));
    all.resize(all.size() + count);
    reader.read(std::as_writable_bytes(std::span(all).last(count)));
  }
  return all;
}

// The definition: walk the indices, add up offset and strides.
std::vector<std::int32_t> expected(const StoredTensor& tensor) {
  std::vector<std::int32_t> all;
  std::vector<std::int64_t> index(tensor.shape.size(), 0);
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    all.push_back(static_cast<std::int32_t>(
        std::inner_product(index.begin(), index.end(), tensor.strides.begin(), tensor.offset)));
    for (std::size_t k = index.size(); k-- > 0;) {
      if (++index[k] < tensor.shape[k]) break;
      index[k] = 0;
    }
  }
  return all;
}

}  // namespace

TEST_CASE("random views read as their definition says, in pieces of any size") {
  std::mt19937 random(7);
  const auto below = [&](std::int64_t n) {
    return static_cast<std::int64_t>(random() % static_cast<unsigned>(n));
  };
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::int64_t> shape(static_cast<std::size_t>(below(5)));
    std::vector<std::int64_t> strides(shape.size());
    std::int64_t last = below(5);
    const std::int64_t offset = last;
    for (std::size_t k = 0; k < shape.size(); ++k) {
      shape[k] = below(6) == 0 ? 0 : 1 + below(5);
      strides[k] = below(30);
      if (shape[k] > 0) last += (shape[k] - 1) * strides[k];
    }
    const StoredTensor tensor = counting(static_cast<std::size_t>(last) + 1, shape, strides, offset);
    CAPTURE(round);
    CHECK(read(tensor, 1 + static_cast<std::size_t>(below(40))) == expected(tensor));
  }
}

TEST_CASE("rising views beyond the window are read without holding them") {
  constexpr std::size_t kCount = 3'000'000;  // 12 MB
  for (const auto& [shape, strides] :
       std::vector<std::pair<std::vector<std::int64_t>, std::vector<std::int64_t>>>{
           {{1'500'000}, {2}},             // every second
           {{2900, 500}, {1000, 1}},       // half of each row
           {{10, 3}, {299'000, 100'000}},  // far apart
           {{2, 3, 250'000}, {1'500'000, 500'000, 2}},
           {{7, 400'000}, {430'000, 1}}}) {
    const StoredTensor tensor = counting(kCount, shape, strides);
    CHECK(ElementReader::memory_need(tensor) == std::uint64_t{1} << 20);
    CHECK(read(tensor, 10'007) == expected(tensor));
  }
}

TEST_CASE("contiguous tensors are streamed, others report the memory that they need") {
  CHECK(ElementReader::memory_need(counting(6, {2, 3}, {3, 1})) == 0);
  CHECK(ElementReader::memory_need(counting(6, {2, 3}, {1, 2})) == 24);
  CHECK(ElementReader::memory_need(counting(9, {2, 1, 2}, {4, 77, 1}, 3)) == 24);
  CHECK(counting(6, {2, 1, 3}, {3, 99, 1}).is_contiguous());
  CHECK(counting(0, {0, 5}, {9, 9}).is_contiguous());
  CHECK(counting(1, {}, {}).is_contiguous());
  CHECK_FALSE(counting(6, {2, 3}, {1, 2}).is_contiguous());
}

TEST_CASE("a permuted view beyond the limit is refused before anything is read") {
  struct Endless final : ByteSource {
    std::uint64_t size() const override { return std::uint64_t{1} << 40; }
    void read_at(std::uint64_t, std::span<std::byte>) const override { FAIL("read"); }
    const std::string& name() const override { return name_; }
    std::string name_ = "endless";
  };
  StoredTensor tensor;
  tensor.dtype = DType::float64;
  tensor.storage = std::make_shared<Endless>();
  tensor.shape = {8192, 8192};
  tensor.strides = {1, 8192};
  CHECK(ElementReader::memory_need(tensor) == 8192 * 8192 * 8);
  CHECK_THROWS_AS(ElementReader{tensor}, FormatError);
}

TEST_CASE("bytes come out in the machine's order, signs as the view says") {
  const auto hex = [](DType dtype, bool big, bool conjugate, bool negative) {
    return element_hex({.dtype = dtype,
                        .shape = {16 / static_cast<std::int64_t>(tensor::info(dtype).size)},
                        .strides = {1},
                        .storage = memory_source(std::string_view("abcdefghijklmnop")),
                        .big_endian = big,
                        .conjugate = conjugate,
                        .negative = negative});
  };
  const std::string plain = "6162636465666768696a6b6c6d6e6f70";
  CHECK(hex(DType::uint8, true, false, false) == plain);
  CHECK(hex(DType::int16, false, false, false) == plain);
  CHECK(hex(DType::int16, true, false, false) ==
        "6261646366656867"
        "6a696c6b6e6d706f");
  CHECK(hex(DType::float64, true, false, false) ==
        "6867666564636261"
        "706f6e6d6c6b6a69");
  CHECK(hex(DType::complex64, true, false, false) ==
        "64636261"
        "68676665"
        "6c6b6a69"
        "706f6e6d");
  CHECK(hex(DType::float16, false, false, true) ==
        "61e263e465e667e8"
        "69ea6bec6dee6ff0");
  CHECK(hex(DType::float32, false, false, true) ==
        "616263e4656667e8"
        "696a6bec6d6e6ff0");
  CHECK(hex(DType::complex64, false, true, false) ==
        "61626364656667e8"
        "696a6b6c6d6e6ff0");
  CHECK(hex(DType::complex128, false, true, true) ==
        "61626364656667e8"
        "696a6b6c6d6e6f70");
  CHECK(hex(DType::complex64, true, true, false) ==
        "64636261"
        "686766e5"
        "6c6b6a69"
        "706f6eed");
}

TEST_CASE("more than there is cannot be asked for") {
  ElementReader reader(counting(3, {3}, {1}));
  std::vector<std::byte> four(16);
  CHECK_THROWS_AS(reader.read(four), FormatError);
  CHECK_THROWS_AS(reader.read(std::span(four).first(3)), FormatError);
  reader.read(std::span(four).first(12));
  CHECK(reader.remaining() == 0);
  reader.read({});
  CHECK_THROWS_AS(reader.read(std::span(four).first(4)), FormatError);
}

}  // namespace msprobe::formats::stored_tensor_test
