// SPDX-License-Identifier: Apache-2.0
#include "support/parallel.hpp"

#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/version.h>

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>

#include "support/interrupt.hpp"

namespace msprobe {

struct ThreadLimit::Impl {
  explicit Impl(std::size_t threads) : control(tbb::global_control::max_allowed_parallelism, threads) {}
  tbb::global_control control;
};

ThreadLimit::ThreadLimit(int jobs) {
  // More than 32 threads only wait for each other on one shared file system.
  const std::size_t cores = std::max(1U, std::thread::hardware_concurrency());
  impl_ = std::make_unique<Impl>(jobs > 0 ? static_cast<std::size_t>(jobs) : std::min<std::size_t>(cores, 32));
}

ThreadLimit::~ThreadLimit() = default;

void parallel_for(std::size_t count, const std::function<void(std::size_t)>& body) {
  std::mutex mutex;
  std::exception_ptr failure;
  std::size_t failed_at = count;
  tbb::task_group_context context;
  tbb::parallel_for(
      tbb::blocked_range<std::size_t>(0, count, 1),
      [&](const tbb::blocked_range<std::size_t>& range) {
        for (std::size_t i = range.begin(); i != range.end(); ++i) {
          try {
            check_interrupt();
            body(i);
          } catch (...) {
            const std::lock_guard lock(mutex);
            if (i < failed_at) {
              failed_at = i;
              failure = std::current_exception();
            }
            context.cancel_group_execution();
            return;
          }
        }
      },
      tbb::simple_partitioner(), context);
  if (failure) std::rethrow_exception(failure);
}

std::string_view tbb_version() { return TBB_runtime_version(); }

}  // namespace msprobe
