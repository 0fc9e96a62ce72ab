// SPDX-License-Identifier: Apache-2.0
#include "collector/forks.hpp"

#include <pthread.h>

#include <atomic>

#include "collector/call.hpp"
#include "support/error.hpp"

namespace msprobe::collector {
namespace {

std::atomic<std::uint64_t> g_forks{0};

}  // namespace

void watch_forks() {
  static const int kWatching = ::pthread_atfork(lock_names, unlock_names, [] {
    unlock_names();
    ++g_forks;
  });
  if (kWatching != 0) throw Error("cannot detect forks of the process");
}

std::uint64_t fork_count() {
  return g_forks.load(std::memory_order_relaxed);
}

}  // namespace msprobe::collector
