// SPDX-License-Identifier: Apache-2.0
#include "collector/tensor_queue.hpp"

#include <algorithm>
#include <cstring>
#include <exception>
#include <system_error>
#include <utility>

#include "collector/no_signals.hpp"
#include "collector/tensor_file.hpp"

namespace msprobe::collector {
namespace {

constexpr std::size_t kThreads = 2;
constexpr std::uint64_t kMaxSpare = std::uint64_t{64} << 20;
constexpr std::size_t kMaxFailures = 20;

}  // namespace

TensorQueue::~TensorQueue() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool TensorQueue::start_threads() {
  if (tried_) return !threads_.empty();
  tried_ = true;
  const NoSignals none;
  try {
    while (threads_.size() < kThreads) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
    // One is enough, and none means that files are written by who brings them.
    return !threads_.empty();
  }
  return true;
}

TensorCopy TensorQueue::copy(const TensorView& view) {
  TensorCopy result;
  const auto bytes = static_cast<std::size_t>(view.bytes());
  {
    const std::lock_guard lock(mutex_);
    const auto fits = std::find_if(spare_.begin(), spare_.end(), [&](const TensorCopy& spare) {
      return spare.capacity >= bytes && spare.capacity / 4 <= bytes;
    });
    if (fits != spare_.end()) {
      result = std::move(*fits);
      spare_bytes_ -= result.capacity;
      spare_.erase(fits);
    }
  }
  if (!result.memory) {
    result.memory.reset(new std::byte[bytes]);
    result.capacity = bytes;
  }
  std::byte* to = result.memory.get();
  each_piece(view, [&](std::span<const std::byte> piece) {
    std::memcpy(to, piece.data(), piece.size());
    to += piece.size();
  });
  result.view = view;
  result.view.data = result.memory.get();
  result.view.conjugate = result.view.negative = false;
  std::int64_t stride = 1;
  for (std::size_t axis = view.rank; axis-- > 0;) {
    result.view.strides[axis] = stride;
    stride *= std::max<std::int64_t>(view.shape[axis], 1);
  }
  return result;
}

void TensorQueue::write(std::string path, const TensorView& view) {
  bool threads = false;
  {
    std::unique_lock lock(mutex_);
    // A copy as large as that takes longer to make than it saves.
    threads = view.bytes() <= kBudget / 2 && start_threads();
    if (threads) {
      room_.wait(lock, [&] { return held_ + view.bytes() <= kBudget; });
      held_ += view.bytes();
    }
  }
  if (!threads) return write_now(path, view);
  try {
    enqueue(std::move(path), copy(view));
  } catch (...) {
    const std::lock_guard lock(mutex_);
    held_ -= view.bytes();
    throw;
  }
}

void TensorQueue::write(std::string path, TensorCopy copy) {
  bool threads = false;
  {
    const std::lock_guard lock(mutex_);
    threads = start_threads();
    if (threads) held_ += copy.view.bytes();
  }
  if (!threads) return write_now(path, copy.view);
  enqueue(std::move(path), std::move(copy));
}

void TensorQueue::enqueue(std::string path, TensorCopy copy) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back({std::move(path), std::move(copy)});
  work_.notify_one();
}

void TensorQueue::write_now(const std::string& path, const TensorView& view) noexcept {
  try {
    write_tensor_file(path, view);
  } catch (const std::exception& error) {
    const std::lock_guard lock(mutex_);
    try {
      if (failures_.size() < kMaxFailures) failures_.emplace_back(error.what());
    } catch (const std::bad_alloc&) {
      return;  // no memory even to say so
    }
  }
}

void TensorQueue::recycle(TensorCopy copy) {
  if (copy.capacity > kMaxSpare - spare_bytes_) return;
  spare_bytes_ += copy.capacity;
  spare_.push_back(std::move(copy));
}

void TensorQueue::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    work_.wait(lock, [this] { return stop_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    ++busy_;
    lock.unlock();
    write_now(task.path, task.copy.view);
    lock.lock();
    --busy_;
    held_ -= task.copy.view.bytes();
    recycle(std::move(task.copy));
    room_.notify_all();
  }
}

std::vector<std::string> TensorQueue::finish() {
  std::unique_lock lock(mutex_);
  room_.wait(lock, [this] { return tasks_.empty() && busy_ == 0; });
  return std::exchange(failures_, {});
}

}  // namespace msprobe::collector
