// SPDX-License-Identifier: Apache-2.0
// Writes tensor files behind the program's back, from copies, in a bounded amount of memory.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "collector/tensor_view.hpp"

namespace msprobe::collector {

/// A tensor's elements in memory of its own, in row-major order.
struct TensorCopy {
  TensorView view;
  std::unique_ptr<std::byte[]> memory;
  std::size_t capacity = 0;
};

class TensorQueue {
 public:
  /// Memory of copies that wait to be written; who brings more waits, too.
  static constexpr std::uint64_t kBudget = std::uint64_t{256} << 20;

  TensorQueue() = default;
  /// Writes what waits.
  ~TensorQueue();
  TensorQueue(const TensorQueue&) = delete;
  TensorQueue& operator=(const TensorQueue&) = delete;

  /// The elements are copied before it returns, or written at once where they are too many for that.
  void write(std::string path, const TensorView& view);
  /// A copy made before; it does not wait.
  void write(std::string path, TensorCopy copy);
  TensorCopy copy(const TensorView& view);
  /// Waits until all is written. Returns what failed since the last time, one line each.
  std::vector<std::string> finish();

 private:
  struct Task {
    std::string path;
    TensorCopy copy;
  };
  /// With the lock held; false: there are none.
  bool start_threads();
  void enqueue(std::string path, TensorCopy copy);
  void work();
  void write_now(const std::string& path, const TensorView& view) noexcept;
  void recycle(TensorCopy copy);

  std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable room_;
  std::deque<Task> tasks_;
  std::uint64_t held_ = 0;  // bytes of tasks that wait or are written
  std::size_t busy_ = 0;
  bool stop_ = false;
  bool tried_ = false;  // to start threads
  std::vector<std::thread> threads_;
  std::vector<TensorCopy> spare_;  // memory to use again
  std::uint64_t spare_bytes_ = 0;
  std::vector<std::string> failures_;
};

}  // namespace msprobe::collector
