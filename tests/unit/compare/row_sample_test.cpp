// SPDX-License-Identifier: Apache-2.0
#include "compare/sinks/row_sample.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <random>
#include <vector>

namespace msprobe::row_sample_test {

using namespace msprobe::compare;

namespace {

std::size_t count(const std::vector<bool>& shown, std::size_t first, std::size_t last) {
  return static_cast<std::size_t>(std::count(shown.begin() + static_cast<std::ptrdiff_t>(first),
                                             shown.begin() + static_cast<std::ptrdiff_t>(last), true));
}

}  // namespace

TEST_CASE("different rows are shown with their neighbours, and the rest evenly") {
  std::vector<RowGroup> groups(100, {2, Urgency::other});
  groups[50].urgency = Urgency::error;
  const std::vector<bool> shown = sample_groups(groups, 40);
  CHECK(count(shown, 46, 55) == 9);
  CHECK(count(shown, 0, 100) == 20);
  CHECK(count(shown, 0, 46) >= 5);
  CHECK(count(shown, 55, 100) >= 5);
}

TEST_CASE("where too much differs causes come first, and what is left of the rest is spread") {
  std::vector<RowGroup> groups(1000, {1, Urgency::error});
  groups[999].urgency = Urgency::cause;
  for (std::size_t i = 0; i < 100; ++i) groups[i].urgency = Urgency::warning;
  const std::vector<bool> shown = sample_groups(groups, 101);
  CHECK(shown[999]);
  CHECK(count(shown, 0, 100) == 0);  // warnings, behind 899 errors
  CHECK(count(shown, 100, 999) == 100);
  CHECK(count(shown, 100, 550) >= 49);  // half of them
  CHECK(count(shown, 100, 550) <= 51);
}

TEST_CASE("never more lines than there is room for, and all of them where that suffices") {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<RowGroup> groups(random() % 50);
    std::size_t lines = 0;
    for (RowGroup& group : groups) {
      group = {1 + random() % 9, static_cast<Urgency>(random() % 6)};
      lines += group.lines;
    }
    const std::size_t room = random() % 200;
    const std::vector<bool> shown = sample_groups(groups, room);
    std::size_t taken = 0;
    for (std::size_t i = 0; i < groups.size(); ++i) taken += shown[i] ? groups[i].lines : 0;
    CHECK(taken <= room);
    if (lines <= room) CHECK(taken == lines);
  }
}

}  // namespace msprobe::row_sample_test
