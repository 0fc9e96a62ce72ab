// SPDX-License-Identifier: Apache-2.0
#include "pairing/join.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace msprobe::compare_fuzzy_test {

using namespace msprobe::pairing;

namespace {

using Keys = std::vector<std::uint32_t>;

/// "0=2 1- 2=3": target row, golden row or none.
std::string text_of(const std::vector<Pair>& pairs) {
  std::string out;
  for (const Pair& pair : pairs) {
    if (!out.empty()) out += ' ';
    out += std::to_string(pair.target);
    out += pair.golden == kUnmatched ? "-" : "=" + std::to_string(pair.golden);
  }
  return out;
}

std::string pairs(const Keys& target, const Keys& golden) {
  return text_of(pair_in_step(target, golden));
}

/// The rule as docs/pairing.md says ("-fm"): two queues, each newest row against all of the other.
std::string by_the_rule(const Keys& target, const Keys& golden) {
  std::vector<Pair> pairs;
  Keys t_queue;
  Keys g_queue;
  const auto equal = [&](std::uint32_t t, std::uint32_t g) {
    return target[t] == golden[g] && target[t] != kNoKey;
  };
  std::uint32_t read = 0;  // rows of the target that were in the queue
  for (std::uint32_t step = 0; step < std::max(target.size(), golden.size()); ++step) {
    if (step < target.size()) {
      t_queue.push_back(step);
      read = step + 1;
    }
    if (step < golden.size()) g_queue.push_back(step);
    if (t_queue.empty() != g_queue.empty()) break;
    std::optional<std::pair<std::size_t, std::size_t>> match;
    for (std::size_t g = 0; g < g_queue.size() && !match; ++g) {
      if (equal(t_queue.back(), g_queue[g])) match = {t_queue.size() - 1, g};
    }
    for (std::size_t t = 0; t + 1 < t_queue.size() && !match; ++t) {
      if (equal(t_queue[t], g_queue.back())) match = {t, g_queue.size() - 1};
    }
    if (!match) continue;
    const auto [t, g] = *match;
    for (std::size_t i = 0; i < t; ++i) pairs.push_back({t_queue[i], kUnmatched, Unmatched::entry_missing});
    pairs.push_back({t_queue[t], g_queue[g]});
    t_queue.erase(t_queue.begin(), t_queue.begin() + static_cast<std::ptrdiff_t>(t) + 1);
    g_queue.erase(g_queue.begin(), g_queue.begin() + static_cast<std::ptrdiff_t>(g) + 1);
  }
  for (const std::uint32_t t : t_queue) pairs.push_back({t, kUnmatched, Unmatched::entry_missing});
  for (; read < target.size(); ++read) pairs.push_back({read, kUnmatched, Unmatched::entry_missing});
  return text_of(pairs);
}

}  // namespace

TEST_CASE("rows pair in step, those between have no partner") {
  CHECK(pairs({0, 1, 2}, {0, 1, 2}) == "0=0 1=1 2=2");
  CHECK(pairs({0, 9, 1}, {0, 1}) == "0=0 1- 2=1");
  CHECK(pairs({0, 1}, {0, 9, 1}) == "0=0 1=2");
  CHECK(pairs({9, 0}, {0, 8}) == "0- 1=0");
  CHECK(pairs({0, 0, 0}, {0}) == "0=0 1- 2-");
  CHECK(pairs({0}, {0, 0, 0}) == "0=0");
  CHECK(pairs({}, {0}).empty());
  CHECK(pairs({0, 1}, {}) == "0- 1-");
  CHECK(pairs({kNoKey}, {kNoKey}) == "0-");
}

TEST_CASE("rows behind the golden side's end") {
  CHECK(pairs({0, 5, 6, 7}, {0}) == "0=0 1- 2- 3-");
}

TEST_CASE("the pairs are those of the rule on any input") {
  std::mt19937 random(20261121);
  const auto below = [&](std::uint32_t limit) { return static_cast<std::uint32_t>(random() % limit); };
  for (int round = 0; round < 4000; ++round) {
    const std::uint32_t kinds = 1 + below(8);
    const auto make = [&] {
      Keys keys(below(25));
      for (std::uint32_t& key : keys) key = below(20) == 0 ? kNoKey : below(kinds);
      return keys;
    };
    const Keys target = make();
    const Keys golden = make();
    CAPTURE(round);
    REQUIRE(pairs(target, golden) == by_the_rule(target, golden));
  }
}

TEST_CASE("every target row is there once, golden rows at most once and in order") {
  std::mt19937 random(7);
  Keys target(5000);
  Keys golden(4000);
  for (Keys* keys : {&target, &golden}) {
    for (std::uint32_t& key : *keys) key = static_cast<std::uint32_t>(random() % 300);
  }
  std::uint32_t next = 0;
  std::int64_t last = -1;
  for (const Pair& pair : pair_in_step(target, golden)) {
    CHECK(pair.target == next++);
    if (pair.golden == kUnmatched) continue;
    CHECK(target[pair.target] == golden[pair.golden]);
    CHECK(std::int64_t{pair.golden} > last);
    last = pair.golden;
  }
  CHECK(next == target.size());
}

}  // namespace msprobe::compare_fuzzy_test
