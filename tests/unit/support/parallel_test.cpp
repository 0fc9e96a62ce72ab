// SPDX-License-Identifier: Apache-2.0
#include "support/parallel.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace msprobe::support_parallel_test {

using namespace msprobe;

TEST_CASE("every index is visited once, and what the workers wrote is there afterwards") {
  for (const int jobs : {1, 2, 8}) {
    const ThreadLimit limit(jobs);
    std::vector<std::string> slots(5000);
    std::vector<std::string> before(slots.size());
    for (std::size_t i = 0; i < before.size(); ++i) before[i] = std::to_string(i);
    parallel_for(slots.size(), [&](std::size_t i) { slots[i] += before[i]; });
    CHECK(slots == before);
  }
}

TEST_CASE("loops may be nested") {
  const ThreadLimit limit(4);
  std::vector<std::size_t> sums(20);
  parallel_for(sums.size(), [&](std::size_t i) {
    std::vector<std::size_t> squares(200);
    parallel_for(squares.size(), [&](std::size_t j) { squares[j] = i * j; });
    for (const std::size_t square : squares) sums[i] += square;
  });
  for (std::size_t i = 0; i < sums.size(); ++i) CHECK(sums[i] == i * 199 * 100);
}

TEST_CASE("the loop runs on no more threads than allowed") {
  const ThreadLimit limit(2);
  std::atomic<int> now{0};
  std::atomic<int> most{0};
  parallel_for(40, [&](std::size_t) {
    const int count = ++now;
    for (int seen = most; count > seen && !most.compare_exchange_weak(seen, count);) {
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    --now;
  });
  CHECK(most >= 1);
  CHECK(most <= 2);
}

TEST_CASE("an exception stops the loop and comes out of it") {
  for (const int jobs : {1, 4}) {
    const ThreadLimit limit(jobs);
    std::atomic<int> visited{0};
    CHECK_THROWS_WITH_AS(parallel_for(100000,
                                      [&](std::size_t i) {
                                        ++visited;
                                        if (i == 7) throw std::runtime_error("seven");
                                      }),
                         "seven", std::runtime_error);
    CHECK(visited < 100000);
  }
}

TEST_CASE(
    "no caller goes on with half of an inner loop's results, and the exception is the one that was thrown") {
  const ThreadLimit limit(4);
  std::atomic<int> halves{0};
  for (int round = 0; round < 50; ++round) {
    std::atomic<bool> inside{false};
    const auto turn = [&](std::size_t i) {
      if (i == 1) {
        for (int wait = 0; wait < 2000 && !inside; ++wait)
          std::this_thread::sleep_for(std::chrono::microseconds(100));
        throw std::runtime_error("one");
      }
      std::vector<int> outer(2);
      parallel_for(outer.size(), [&](std::size_t j) {
        std::vector<int> done(50);
        parallel_for(done.size(), [&](std::size_t k) {
          inside = true;
          std::this_thread::sleep_for(std::chrono::microseconds(100));
          done[k] = 1;
        });
        if (std::ranges::count(done, 1) != 50) ++halves;
        outer[j] = 1;
      });
      if (std::ranges::count(outer, 1) != 2) ++halves;
    };
    CHECK_THROWS_WITH_AS(parallel_for(2, turn), "one", std::runtime_error);
  }
  CHECK(halves == 0);
}

TEST_CASE("no work is done without complaint") {
  parallel_for(0, [](std::size_t) { FAIL("called"); });
}

}  // namespace msprobe::support_parallel_test
