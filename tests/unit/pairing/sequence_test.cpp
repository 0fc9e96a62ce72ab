// SPDX-License-Identifier: Apache-2.0
#include "pairing/sequence.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

namespace msprobe::pairing::sequence_test {
namespace {

using Symbols = std::vector<std::uint32_t>;

std::vector<SequenceMatch> aligned(const Symbols& a, const Symbols& b, std::uint32_t alphabet) {
  return SequenceAligner(a, b, alphabet)
      .align({0, static_cast<std::uint32_t>(a.size()), 0, static_cast<std::uint32_t>(b.size())});
}

/// Ascending on both sides, and equal.
bool is_valid(const std::vector<SequenceMatch>& matches, const Symbols& a, const Symbols& b) {
  for (std::size_t i = 0; i < matches.size(); ++i) {
    if (matches[i].a >= a.size() || matches[i].b >= b.size() || a[matches[i].a] != b[matches[i].b])
      return false;
    if (i > 0 && (matches[i].a <= matches[i - 1].a || matches[i].b <= matches[i - 1].b)) return false;
  }
  return true;
}

/// The textbook's table.
std::size_t longest_common(const Symbols& a, const Symbols& b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (const std::uint32_t symbol : a) {
    std::size_t diagonal = 0;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t above = row[j + 1];
      row[j + 1] = symbol == b[j] ? diagonal + 1 : std::max(row[j], above);
      diagonal = above;
    }
  }
  return row.back();
}

Symbols random_symbols(std::mt19937& random, std::size_t length, std::uint32_t alphabet) {
  Symbols symbols(length);
  for (std::uint32_t& symbol : symbols) symbol = static_cast<std::uint32_t>(random() % alphabet);
  return symbols;
}

}  // namespace

TEST_CASE("short sequences have a longest common subsequence") {
  std::mt19937 random(7);
  for (int round = 0; round < 500; ++round) {
    const std::uint32_t alphabet = 1 + static_cast<std::uint32_t>(random() % 9);
    const Symbols a = random_symbols(random, random() % 40, alphabet);
    const Symbols b = random_symbols(random, random() % 40, alphabet);
    const auto matches = aligned(a, b, alphabet);
    REQUIRE(is_valid(matches, a, b));
    REQUIRE(matches.size() == longest_common(a, b));
  }
}

TEST_CASE("a part of the sequences is aligned by itself") {
  const Symbols a = {1, 2, 3, 4, 5};
  const Symbols b = {5, 4, 3, 2, 1};
  const auto matches = SequenceAligner(a, b, 6).align({1, 4, 1, 3});
  REQUIRE(matches.size() == 1);
  CHECK(a[matches[0].a] == b[matches[0].b]);
  CHECK(matches[0].a >= 1);
  CHECK(matches[0].b < 3);
}

TEST_CASE("a block that one side lacks costs nothing else") {
  Symbols b(200000);
  for (std::uint32_t i = 0; i < b.size(); ++i) b[i] = i % 37;
  Symbols a = b;
  a.erase(a.begin() + 70000, a.begin() + 90000);
  const auto matches = aligned(a, b, 37);
  CHECK(is_valid(matches, a, b));
  CHECK(matches.size() == a.size());
}

TEST_CASE("many small differences in long sequences are found around what is unique") {
  std::mt19937 random(3);
  Symbols b(200000);
  for (std::uint32_t i = 0; i < b.size(); ++i)
    b[i] = i % 50 == 0 ? 20 + i / 50 : static_cast<std::uint32_t>(random() % 20);
  Symbols a;
  for (std::uint32_t i = 0; i < b.size(); ++i) {
    if (i % 97 != 1) a.push_back(b[i]);
  }
  const auto matches = aligned(a, b, 20 + 4001);
  CHECK(is_valid(matches, a, b));
  CHECK(matches.size() > a.size() - a.size() / 1000);
}

TEST_CASE("what does not align at all ends in time") {
  constexpr std::uint32_t kLength = 50000;
  Symbols a(kLength);
  Symbols b(kLength);
  SUBCASE("nothing in common") {
    for (std::uint32_t i = 0; i < kLength; ++i) {
      a[i] = i;
      b[i] = kLength + i;
    }
    CHECK(aligned(a, b, 2 * kLength).empty());
  }
  SUBCASE("all of it the other way round") {
    for (std::uint32_t i = 0; i < kLength; ++i) {
      a[i] = i;
      b[i] = kLength - 1 - i;
    }
    const auto matches = aligned(a, b, kLength);
    CHECK(is_valid(matches, a, b));
    CHECK(matches.size() == 1);
  }
  SUBCASE("chance") {
    std::mt19937 random(11);
    for (const std::uint32_t alphabet : {2U, 30U, 3000U}) {
      a = random_symbols(random, kLength, alphabet);
      b = random_symbols(random, kLength, alphabet);
      const auto matches = aligned(a, b, alphabet);
      CHECK(is_valid(matches, a, b));
      CHECK(!matches.empty());
    }
  }
}

}  // namespace msprobe::pairing::sequence_test
