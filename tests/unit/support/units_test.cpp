// SPDX-License-Identifier: Apache-2.0
#include "support/units.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

namespace msprobe::units_test {
namespace {

using Sizes = std::vector<std::uint64_t>;
using Numbers = std::vector<std::size_t>;

constexpr std::uint64_t kLarge = std::uint64_t{1} << 30;

}  // namespace

TEST_CASE("the largest unit goes first, of equal ones the one that stands first") {
  CHECK(largest_first({3, 9, 3, 10}) == Numbers{3, 1, 0, 2});
  UnitQueue queue({kLarge, 3 * kLarge, 2 * kLarge}, 1);
  CHECK(queue.take(0, 0) == Numbers{1});
  CHECK(queue.take(0, 1) == Numbers{2});
  CHECK(queue.take(0, 0) == Numbers{0});
  CHECK(queue.take(0, 0).empty());
}

TEST_CASE("the last units are for processes that have none") {
  UnitQueue queue({kLarge, kLarge, kLarge}, 3);
  CHECK(queue.take(0, 0) == Numbers{0});
  CHECK(queue.take(0, 1).empty());
  CHECK(queue.take(1, 0) == Numbers{1});
  CHECK(queue.take(0, 0) == Numbers{2});
}

TEST_CASE("many small units are handed out together, and all of them once") {
  const Sizes sizes(1000, 10);
  UnitQueue queue(sizes, 2);
  CHECK(queue.take(0, 0).size() > 1);
  Numbers all(1000);
  for (Numbers units = queue.take(1, 0); !units.empty(); units = queue.take(1, 0)) {
    for (const std::size_t unit : units) ++all[unit];
  }
  CHECK(*std::max_element(all.begin(), all.end()) == 1);
  CHECK(queue.left() == 0);
}

TEST_CASE("a unit goes to a process that can compute it") {
  UnitQueue queue({kLarge, 2 * kLarge, 3 * kLarge}, 2, {{}, {1}, {0, 1}});
  CHECK(queue.take(0, 0) == Numbers{2});
  CHECK(queue.take(0, 0) == Numbers{0});
  CHECK(queue.take(0, 0).empty());
  CHECK(queue.left() == 1);
  CHECK_FALSE(queue.stuck_without({true, false}));
  CHECK(queue.stuck_without({false, true}) == 1);
  CHECK(queue.take(1, 0) == Numbers{1});
}

TEST_CASE("the balance of equal units is that of counting") {
  const Balance balance = balance_of(Sizes(6, kLarge), 4);
  CHECK(std::accumulate(balance.units.begin(), balance.units.end(), std::size_t{0}) == 6);
  CHECK(*std::max_element(balance.units.begin(), balance.units.end()) == 2);
  CHECK(balance.idle == doctest::Approx(0.25));  // 6 of 2 * 4
  CHECK(balance_of(Sizes(8, kLarge), 4).idle == doctest::Approx(0));
  CHECK(balance_of({}, 4).idle == 0);
}

TEST_CASE("one large unit is what all wait for") {
  const Balance balance = balance_of({4 * kLarge, kLarge, kLarge, kLarge, kLarge}, 2);
  CHECK(balance.bytes == Sizes{4 * kLarge, 4 * kLarge});
  CHECK(balance_of({8 * kLarge, kLarge, kLarge}, 2).idle == doctest::Approx(1 - 10.0 / 16));
}

}  // namespace msprobe::units_test
