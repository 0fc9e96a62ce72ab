// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/permutation.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

namespace msprobe::checkpoint::permutation_test {
namespace {

using Places = std::vector<std::int64_t>;

/// The form of the permutation from `first` to `second`, whose element i is element from(i) of `first`.
template <typename From>
std::string form_of(std::int64_t n, const From& from) {
  std::vector<std::uint64_t> first(static_cast<std::size_t>(n));
  std::iota(first.begin(), first.end(), 1000);
  std::vector<std::uint64_t> second;
  for (std::int64_t i = 0; i < n; ++i) second.push_back(first[static_cast<std::size_t>(from(i))]);
  const auto permutation = permutation_between(first, second);
  return permutation ? permutation_form(*permutation) : "none";
}

}  // namespace

TEST_CASE("permutations: the forms that conversions leave are named") {
  const auto halves = [](std::int64_t d) {  // of each d: 0, d/2, 1, d/2 + 1, ...
    return [d](std::int64_t i) { return i - i % d + i % 2 * (d / 2) + i % d / 2; };
  };
  const auto pairs = [](std::int64_t d) {  // of each d: 0, 2, 4, ..., 1, 3, ...
    return [d](std::int64_t i) { return i - i % d + i % d % (d / 2) * 2 + i % d / (d / 2); };
  };
  for (const std::int64_t d : {8, 64, 128}) {
    CHECK(form_of(1024, halves(d)) == "halves -> interleaved, " + std::to_string(d) + " per head");
    CHECK(form_of(1024, pairs(d)) == "interleaved -> halves, " + std::to_string(d) + " per head");
  }
  CHECK(form_of(6, [](std::int64_t i) { return 5 - i; }) == "reversed");
  CHECK(form_of(1024, [](std::int64_t i) { return (i + 512) % 1024; }) == "the two halves exchanged");
  CHECK(form_of(1024, [](std::int64_t i) { return (i + 64) % 1024; }) == "the first 64 moved to the end");
  CHECK(form_of(1024, [](std::int64_t i) { return i - i % 64 + (i % 64 + 32) % 64; }) ==
        "the halves of each 64 exchanged");
  CHECK(form_of(96, [](std::int64_t i) {
          return Places{2, 0, 1}[static_cast<std::size_t>(i / 32)] * 32 + i % 32;
        }) == "the first 64 moved to the end");
  CHECK(form_of(96, [](std::int64_t i) {
          return Places{1, 0, 2}[static_cast<std::size_t>(i / 32)] * 32 + i % 32;
        }) == "blocks of 32 in the order 1, 0, 2");
  // Eight heads by two groups: 0, 4, 1, 5, ...
  CHECK(form_of(256, [](std::int64_t i) { return (i / 32 % 2 * 4 + i / 64) * 32 + i % 32; }) ==
        "8 blocks of 32 regrouped by 2");
  // In pairs by 8 heads, and out of them by 2.
  CHECK(form_of(64, [&](std::int64_t i) { return halves(8)(pairs(32)(i)); }) ==
        "interleaved with 8 per head against 32");
  CHECK(form_of(997, [](std::int64_t i) { return i * 5 % 997; }) == "permuted");
}

TEST_CASE("permutations: equal sequences and sequences of other elements have none") {
  const std::vector<std::uint64_t> a = {5, 5, 7, 9};
  CHECK_FALSE(permutation_between(a, a));
  CHECK_FALSE(permutation_between(a, std::vector<std::uint64_t>{5, 7, 7, 9}));
  CHECK_FALSE(permutation_between(a, std::vector<std::uint64_t>{5, 5, 7}));
  CHECK(permutation_between(a, std::vector<std::uint64_t>{9, 5, 7, 5}) == Places{3, 0, 2, 1});
}

}  // namespace msprobe::checkpoint::permutation_test
