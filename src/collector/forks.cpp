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

OwnProcess::OwnProcess() {
  static const int kWatching = ::pthread_atfork(lock_names, unlock_names, [] {
    unlock_names();
    ++g_forks;
  });
  if (kWatching != 0) throw Error("cannot detect forks of the process");
  forks_ = g_forks.load(std::memory_order_relaxed);
}

bool OwnProcess::left() const {
  return forks_ != g_forks.load(std::memory_order_relaxed);
}

}  // namespace msprobe::collector
