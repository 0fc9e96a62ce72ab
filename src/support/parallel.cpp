// SPDX-License-Identifier: Apache-2.0
#include "support/parallel.hpp"

#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>
#include <tbb/version.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "support/interrupt.hpp"

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

namespace msprobe {
namespace {

// Debian's TBB is not built for the thread sanitizer, which therefore does not see that a loop begins after
// what came before it and ends before what comes after it. These calls tell it; in any other build they are
// nothing.
#if defined(__SANITIZE_THREAD__)
char g_begun;
char g_done;
void loop_begins() {
  __tsan_release(&g_begun);
}
void chunk_begins() {
  __tsan_acquire(&g_begun);
}
void chunk_ends() {
  __tsan_release(&g_done);
}
void loop_ends() {
  __tsan_acquire(&g_done);
}
#else
void loop_begins() {}
void chunk_begins() {}
void chunk_ends() {}
void loop_ends() {}
#endif

/// Thrown by a loop that was stopped because one around it was, and has the reason: whoever called it must
/// not go on with half of its results. Not a std::exception: nobody may take it for an error of their own.
struct Abandoned {};

}  // namespace

struct ThreadLimit::Impl {
  explicit Impl(std::size_t threads) : control(tbb::global_control::max_allowed_parallelism, threads) {}
  tbb::global_control control;
};

ThreadLimit::ThreadLimit(int jobs) {
  // More than 32 threads only wait for each other on one shared file system.
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  impl_ =
      std::make_unique<Impl>(jobs > 0 ? static_cast<std::size_t>(jobs) : std::min<std::size_t>(cores, 32));
}

ThreadLimit::~ThreadLimit() = default;

std::size_t most_threads() {
  return tbb::global_control::active_value(tbb::global_control::max_allowed_parallelism);
}

void parallel_for(std::size_t count, const std::function<void(std::size_t)>& body) {
  std::mutex mutex;
  std::exception_ptr failure;
  std::size_t failed_at = count;
  std::atomic<bool> abandoned{false};  // seen from within; the context may be told of it later
  tbb::task_group_context context;
  loop_begins();
  // Who waits for the end of an inner loop must not take up another turn of an outer one, which may need what
  // this one holds.
  tbb::this_task_arena::isolate([&] {
    tbb::parallel_for(
        tbb::blocked_range<std::size_t>(0, count, 1),
        [&](const tbb::blocked_range<std::size_t>& range) {
          chunk_begins();
          for (std::size_t i = range.begin(); i != range.end(); ++i) {
            try {
              check_interrupt();
              body(i);
            } catch (const Abandoned&) {
              abandoned = true;
              break;
            } catch (...) {
              const std::lock_guard lock(mutex);
              if (i < failed_at) {
                failed_at = i;
                failure = std::current_exception();
              }
              context.cancel_group_execution();
              break;
            }
          }
          chunk_ends();
        },
        tbb::simple_partitioner(), context);
  });
  loop_ends();
  if (failure) std::rethrow_exception(failure);
  if (abandoned || context.is_group_execution_cancelled()) throw Abandoned();
}

std::string_view tbb_version() {
  return TBB_runtime_version();
}

}  // namespace msprobe
