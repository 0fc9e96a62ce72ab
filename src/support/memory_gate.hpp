// SPDX-License-Identifier: Apache-2.0
// Limits the memory that parallel workers use at the same time.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace msprobe {

/// A worker passes with the number of bytes that it is about to allocate; if they do not fit, it waits. A
/// single request above the limit passes alone.
class MemoryGate {
 public:
  explicit MemoryGate(std::uint64_t limit) : limit_(limit) {}

  class Pass {
   public:
    Pass(MemoryGate& gate, std::uint64_t bytes) : gate_(gate), bytes_(bytes) { gate_.enter(bytes_); }
    ~Pass() { gate_.leave(bytes_); }
    Pass(const Pass&) = delete;
    Pass& operator=(const Pass&) = delete;

   private:
    MemoryGate& gate_;
    std::uint64_t bytes_;
  };

 private:
  void enter(std::uint64_t bytes) {
    if (bytes == 0) return;
    std::unique_lock lock(mutex_);
    room_.wait(lock, [&] { return held_ == 0 || held_ + bytes <= limit_; });
    held_ += bytes;
  }
  void leave(std::uint64_t bytes) {
    if (bytes == 0) return;
    {
      const std::lock_guard lock(mutex_);
      held_ -= bytes;
    }
    room_.notify_all();
  }

  std::uint64_t limit_;
  std::uint64_t held_ = 0;
  std::mutex mutex_;
  std::condition_variable room_;
};

}  // namespace msprobe
