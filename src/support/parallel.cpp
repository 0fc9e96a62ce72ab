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

// Debian's TBB is not built for the thread sanitizer, which therefore cannot see that a loop begins after the
// code before it and ends before the code after it. These calls inform the sanitizer; in any other build they
// do nothing.
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

/// Ends a loop because an outer loop, which has the reason, was stopped: the caller must not continue with
/// half of the results. It is not a std::exception, so that no code mistakes it for its own error.
struct Abandoned {};

}  // namespace

struct ThreadLimit::Impl {
  explicit Impl(std::size_t threads) : control(tbb::global_control::max_allowed_parallelism, threads) {}
  tbb::global_control control;
};

ThreadLimit::ThreadLimit(int jobs) {
  // More than 32 threads only wait for each other on a shared file system.
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
  std::atomic<bool> abandoned{false};  // read inside the loop; the context may be cancelled later
  tbb::task_group_context context;
  loop_begins();
  // A thread that waits for the end of an inner loop must not start another turn of an outer loop, which may
  // need resources that this turn holds.
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
