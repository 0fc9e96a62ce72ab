// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/parameter.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "support/error.hpp"
#include "unit/checkpoint/memory_tensor.hpp"

namespace msprobe::checkpoint::parameter_test {
namespace {

using tensor::DType;

/// An array of numbers with its own, plain idea of cutting and joining.
struct Dense {
  Shape shape;
  std::vector<std::int32_t> values;

  std::int32_t at(const Shape& index) const {
    std::int64_t flat = 0;
    for (std::size_t i = 0; i < shape.size(); ++i) flat = flat * shape[i] + index[i];
    return values[static_cast<std::size_t>(flat)];
  }
};

template <typename Body>
void each_index(const Shape& shape, Body body) {
  Shape index(shape.size());
  std::int64_t count = 1;
  for (const std::int64_t length : shape) count *= length;
  for (std::int64_t i = 0; i < count; ++i) {
    body(index);
    for (std::size_t axis = shape.size(); axis-- > 0;) {
      if (++index[axis] < shape[axis]) break;
      index[axis] = 0;
    }
  }
}

Dense box(const Dense& from, const Shape& begin, const Shape& size) {
  Dense part{size, {}};
  each_index(size, [&](const Shape& index) {
    Shape there = index;
    for (std::size_t i = 0; i < there.size(); ++i) there[i] += begin[i];
    part.values.push_back(from.at(there));
  });
  return part;
}

Dense counted(const Shape& shape) {
  Dense dense{shape, {}};
  each_index(shape,
             [&](const Shape&) { dense.values.push_back(static_cast<std::int32_t>(dense.values.size())); });
  return dense;
}

Parameter as_parameter(const Dense& dense) {
  return in_memory(DType::int32, dense.shape, dense.values);
}

/// Cuts every axis at random and lays the boxes down in random order.
Parameter shattered(const Dense& dense, std::mt19937& random) {
  std::vector<std::vector<std::int64_t>> cuts;
  Shape grid;
  for (const std::int64_t length : dense.shape) {
    std::vector<std::int64_t> at = {0, length};
    for (int i = 0; i < 3; ++i) at.push_back(std::uniform_int_distribution<std::int64_t>(0, length)(random));
    std::sort(at.begin(), at.end());
    at.erase(std::unique(at.begin(), at.end()), at.end());
    grid.push_back(static_cast<std::int64_t>(at.size()) - 1);
    cuts.push_back(std::move(at));
  }
  Parameter whole_one = as_parameter(dense);
  whole_one.blocks.clear();
  each_index(grid, [&](const Shape& cell) {
    Shape begin;
    Shape size;
    for (std::size_t i = 0; i < cell.size(); ++i) {
      const auto k = static_cast<std::size_t>(cell[i]);
      begin.push_back(cuts[i][k]);
      size.push_back(cuts[i][k + 1] - cuts[i][k]);
    }
    ParameterBlock block = as_parameter(box(dense, begin, size)).blocks[0];
    block.offset = begin;
    whole_one.blocks.push_back(block);
  });
  std::shuffle(whole_one.blocks.begin(), whole_one.blocks.end(), random);
  return whole_one;
}

void check_refused(const Parameter& parameter) {
  CHECK_THROWS_AS(elements<std::int32_t>(parameter), FormatError);
}

}  // namespace

TEST_CASE("shards of any cut come out in row-major order") {
  std::mt19937 random(3);
  for (const Shape& shape :
       {Shape{1}, Shape{17}, Shape{5, 9}, Shape{4, 3, 11}, Shape{2, 3, 2, 5}, Shape{300, 70}}) {
    const Dense dense = counted(shape);
    for (int round = 0; round < 8; ++round) {
      const Parameter parameter = shattered(dense, random);
      for (const std::size_t piece : {std::size_t{1}, std::size_t{13}, std::size_t{100'000}}) {
        if (piece == 1 && dense.values.size() > 1000) continue;
        CHECK(elements<std::int32_t>(parameter, piece) == dense.values);
      }
    }
  }
}

TEST_CASE("narrow, drop_axis and concatenate on shards do what they do on a dense array") {
  std::mt19937 random(5);
  const Dense dense = counted({4, 6, 5});
  for (int round = 0; round < 20; ++round) {
    const Parameter parameter = shattered(dense, random);
    CHECK(elements<std::int32_t>(narrow(parameter, 1, 2, 3)) == box(dense, {0, 2, 0}, {4, 3, 5}).values);
    const Parameter layer = drop_axis(narrow(parameter, 0, 3, 1), 0);
    CHECK(layer.shape == Shape{6, 5});
    CHECK(elements<std::int32_t>(layer) == box(dense, {3, 0, 0}, {1, 6, 5}).values);
    const Parameter column = narrow(layer, 1, 4, 1);
    CHECK(elements<std::int32_t>(column) == box(dense, {3, 0, 4}, {1, 6, 1}).values);
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const std::int64_t half = dense.shape[axis] / 2;
      const Parameter joined = concatenate(
          {narrow(parameter, axis, half, dense.shape[axis] - half), narrow(parameter, axis, 0, half)}, axis);
      CHECK(joined.shape == dense.shape);
      Dense expected{dense.shape, {}};
      each_index(dense.shape, [&](const Shape& index) {
        Shape there = index;
        there[axis] = (there[axis] + half) % dense.shape[axis];
        expected.values.push_back(dense.at(there));
      });
      CHECK(elements<std::int32_t>(joined) == expected.values);
    }
  }
}

TEST_CASE("views that are not contiguous are read in their own order") {
  formats::StoredTensor transposed = stored<std::int32_t>(DType::int32, {2, 3}, {0, 1, 2, 3, 4, 5});
  transposed.shape = {3, 2};
  transposed.strides = {1, 3};
  const Parameter parameter = whole(
      "p", DType::int32, {3, 2}, [transposed] { return transposed; },
      formats::ElementReader::memory_need(transposed));
  CHECK(elements<std::int32_t>(parameter) == std::vector<std::int32_t>{0, 3, 1, 4, 2, 5});
  CHECK(elements<std::int32_t>(narrow(parameter, 0, 1, 2)) == std::vector<std::int32_t>{1, 4, 2, 5});
  // An axis of length 1 may come or go; any other shape would not have these strides.
  CHECK(elements<std::int32_t>(reshaped(parameter, {1, 3, 2})) ==
        std::vector<std::int32_t>{0, 3, 1, 4, 2, 5});
  check_refused(reshaped(parameter, {2, 3}));
}

TEST_CASE("what does not fit together is refused") {
  const Parameter good = as_parameter(counted({4, 3}));
  SUBCASE("a gap") {
    Parameter gap = concatenate({good, good}, 0);
    gap.blocks[1].offset[0] = 5;
    gap.shape[0] = 9;
    check_refused(gap);
  }
  SUBCASE("an overlap with as many elements as the whole") {
    Parameter overlap = concatenate({good, good}, 0);
    overlap.blocks[1].offset[0] = 0;
    check_refused(overlap);
  }
  SUBCASE("a part beyond the end") {
    Parameter beyond = good;
    beyond.blocks[0].offset[1] = 1;
    check_refused(beyond);
    beyond.blocks[0].offset[1] = -1;
    check_refused(beyond);
    beyond.blocks[0].offset[1] = INT64_MAX;
    check_refused(beyond);
  }
  SUBCASE("a tensor of another size or type than announced") {
    Parameter larger = good;
    larger.blocks[0].view = {4, 4};
    check_refused(larger);
    Parameter other = good;
    other.dtype = DType::float32;
    check_refused(other);
  }
  SUBCASE("joining slices of other shapes or types") {
    CHECK_THROWS_AS(concatenate({good, as_parameter(counted({4, 2}))}, 0), FormatError);
    CHECK_THROWS_AS(concatenate({good, in_memory<float>(DType::float32, {1, 3}, {1, 2, 3})}, 0), FormatError);
    CHECK_THROWS_AS(concatenate({good, good}, 2), FormatError);
  }
  SUBCASE("sizes beyond any memory") {
    CHECK_THROWS_AS(checked_numel({std::int64_t{1} << 40, std::int64_t{1} << 40}, "p"), FormatError);
    CHECK_THROWS_AS(checked_numel({0, std::int64_t{1} << 40, std::int64_t{1} << 40}, "p"), FormatError);
    CHECK_THROWS_AS(checked_numel({-1}, "p"), FormatError);
    CHECK(checked_numel({}, "p") == 1);
    CHECK(checked_numel({3, 0}, "p") == 0);
  }
}

TEST_CASE("empty parameters and empty shards are nothing to read") {
  CHECK(elements<std::int32_t>(in_memory<std::int32_t>(DType::int32, {0, 3}, {})).empty());
  const Parameter three = as_parameter(counted({3}));
  const Parameter none = in_memory<std::int32_t>(DType::int32, {0}, {});
  CHECK(elements<std::int32_t>(concatenate({none, three, none}, 0)) == std::vector<std::int32_t>{0, 1, 2});
}

}  // namespace msprobe::checkpoint::parameter_test
