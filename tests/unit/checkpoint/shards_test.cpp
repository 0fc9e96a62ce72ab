// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/shards.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "unit/checkpoint/memory_tensor.hpp"

namespace msprobe::checkpoint::shards_test {
namespace {

using tensor::DType;

Shard shard(const Shape& offset, const Shape& size, const std::vector<float>& values,
            const std::optional<Shape>& whole = {}) {
  return {in_memory(DType::float32, size, values), offset, whole, "file", ""};
}

CheckpointEntry joined_of(const std::vector<Shard>& shards) {
  ShardJoiner joiner;
  for (const Shard& each : shards) joiner.add("w", each);
  std::vector<CheckpointEntry> entries = joiner.finish();
  REQUIRE(entries.size() == 1);
  return entries[0];
}

}  // namespace

TEST_CASE("parts are put in their places, in whatever order they come") {
  const CheckpointEntry entry = joined_of(
      {shard({1, 0}, {1, 2}, {3, 4}), shard({0, 2}, {2, 1}, {9, 8}), shard({0, 0}, {1, 2}, {1, 2})});
  CHECK(entry.problem.empty());
  CHECK(entry.parameter.shape == Shape{2, 3});
  CHECK(elements<float>(entry.parameter) == std::vector<float>{1, 2, 9, 3, 4, 8});
}

TEST_CASE("a part that comes twice is a copy of the first") {
  const CheckpointEntry entry =
      joined_of({shard({0}, {2}, {1, 2}), shard({2}, {1}, {3}), shard({2}, {1}, {4}), shard({2}, {0}, {})});
  CHECK(entry.problem.empty());
  CHECK(elements<float>(entry.parameter) == std::vector<float>{1, 2, 3});
  REQUIRE(entry.replicas.size() == 1);
  REQUIRE(entry.replicas[0].original);
  CHECK(elements<float>(*entry.replicas[0].original) == std::vector<float>{3});
  CHECK(elements<float>(entry.replicas[0].parameter) == std::vector<float>{4});
}

TEST_CASE("parts that do not make a whole have a problem") {
  CHECK(joined_of({shard({1}, {1}, {1})}).problem == "none of the files has 1 of its 2 elements");
  CHECK(joined_of({shard({0}, {1}, {1}, Shape{3}), shard({1}, {1}, {1}, Shape{4})}).problem ==
        "file and file give different shapes");
  CHECK(joined_of({shard({0}, {1}, {1}), shard({0, 0}, {1, 1}, {1})}).problem ==
        "file: its part has a different number of dimensions");
  CHECK(joined_of({shard({std::numeric_limits<std::int64_t>::max()}, {1}, {1})}).problem ==
        "file: one of its parts lies outside it");
  Shard other{in_memory(DType::int32, {1}, std::vector<std::int32_t>{1}), {1}, {}, "file", ""};
  CHECK(joined_of({shard({0}, {1}, {1}), other}).problem == "its parts have the types float32 and int32");
}

TEST_CASE("a transposed matrix is read in its own order") {
  const Parameter matrix = in_memory<float>(DType::float32, {2, 3}, {1, 2, 3, 4, 5, 6});
  const Parameter turned = transposed(matrix);
  CHECK(turned.shape == Shape{3, 2});
  for (const std::size_t piece : {1, 2, 6})
    CHECK(elements<float>(turned, piece) == std::vector<float>{1, 4, 2, 5, 3, 6});
  CHECK(elements<float>(transposed(turned)) == std::vector<float>{1, 2, 3, 4, 5, 6});
  CHECK(elements<float>(narrow(turned, 0, 1, 2)) == std::vector<float>{2, 5, 3, 6});
  CHECK(elements<float>(concatenate({turned, turned}, 1)) ==
        std::vector<float>{1, 4, 1, 4, 2, 5, 2, 5, 3, 6, 3, 6});
  // One of a stack, and that of parts.
  const Parameter stack = in_memory<float>(DType::float32, {2, 2, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(elements<float>(transposed(drop_axis(narrow(stack, 0, 1, 1), 0))) == std::vector<float>{5, 7, 6, 8});
  CHECK(elements<float>(transposed(concatenate({matrix, matrix}, 0))) ==
        std::vector<float>{1, 4, 1, 4, 2, 5, 2, 5, 3, 6, 3, 6});
}

}  // namespace msprobe::checkpoint::shards_test
