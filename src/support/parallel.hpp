// SPDX-License-Identifier: Apache-2.0
// All code that works on several threads uses this file. Results must be the same with any number of threads:
// workers fill slots by index, and nothing depends on who came first.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

namespace msprobe {

/// Limits the threads of the whole process as long as it lives.
class ThreadLimit {
 public:
  /// `jobs` 0 means all cores, at most 32.
  explicit ThreadLimit(int jobs);
  ~ThreadLimit();
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// The largest number of threads. It may decide how much is prepared at once, never a result.
std::size_t most_threads();

/// Calls `body(i)` for every i in [0, count). The first exception (by index order among those seen) stops the
/// loop and is thrown again; Interrupted is thrown if the process was asked to stop. Inner loops of a stopped
/// loop end as well, together with their callers.
void parallel_for(std::size_t count, const std::function<void(std::size_t)>& body);

/// As parallel_blocks(), with an object that the calls of a block share, such as a buffer. A thread_local
/// object would end the program if memory is short: the C library aborts if it cannot register a destructor.
template <typename State, typename Body>
void parallel_blocks_with(std::size_t count, const Body& body) {
  constexpr std::size_t kBlock = 64;
  parallel_for((count + kBlock - 1) / kBlock, [&](std::size_t block) {
    State state;
    const std::size_t end = std::min(count, (block + 1) * kBlock);
    for (std::size_t i = block * kBlock; i < end; ++i) body(i, state);
  });
}

/// The same for short bodies: runs many of them in a turn.
template <typename Body>
void parallel_blocks(std::size_t count, const Body& body) {
  struct Nothing {};
  parallel_blocks_with<Nothing>(count, [&](std::size_t i, Nothing&) { body(i); });
}

/// Version of the TBB run-time library, e.g. "2021.8".
std::string_view tbb_version();

}  // namespace msprobe
