// SPDX-License-Identifier: Apache-2.0
#include "collector/tensor_queue.hpp"

#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <exception>
#include <new>
#include <system_error>
#include <utility>

#include "collector/tensor_file.hpp"
#include "support/crc32.hpp"
#include "support/error.hpp"
#include "support/output_file.hpp"
#include "support/text.hpp"

namespace msprobe::collector {
namespace {

constexpr std::size_t kThreads = 2;
constexpr std::uint64_t kMaxSpare = std::uint64_t{64} << 20;
constexpr std::size_t kWorthKeeping = std::size_t{128} << 10;  // larger blocks come from the system each time
constexpr std::size_t kMaxFailures = 20;
// The size of pieces of a copy, so that the checksum finds the bytes in the processor's cache.
constexpr std::size_t kCopyPiece = std::size_t{64} << 10;

/// Blocks signals while a thread of the collector starts: signals are for the threads of the program.
class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~NoSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;

 private:
  sigset_t before_;
};

}  // namespace

TensorQueue::~TensorQueue() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void TensorQueue::set_budget(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  budget_ = bytes;
}

bool TensorQueue::start_threads() {
  if (tried_) return !threads_.empty();
  tried_ = true;
  const NoSignals none;
  try {
    while (threads_.size() < kThreads) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
    // One thread is enough. Without any thread, the callers write the files themselves.
    return !threads_.empty();
  }
  return true;
}

TensorCopy TensorQueue::copy(const TensorView& view) {
  TensorCopy result;
  const auto bytes = static_cast<std::size_t>(view.bytes());
  {
    const std::lock_guard lock(mutex_);
    const auto fits = spare_.lower_bound(bytes);
    if (fits != spare_.end() && fits->first / 4 <= bytes) {
      result.capacity = fits->first;
      result.memory = std::move(fits->second);
      spare_bytes_ -= result.capacity;
      spare_.erase(fits);
    }
  }
  if (!result.memory) {
    result.memory.reset(new std::byte[bytes]);
    result.capacity = bytes;
  }
  std::byte* to = result.memory.get();
  result.crc = 0;
  each_piece(view, [&](std::span<const std::byte> piece) {
    while (!piece.empty()) {
      const std::size_t size = std::min(piece.size(), kCopyPiece);
      std::memcpy(to, piece.data(), size);
      result.crc = crc32(result.crc, {to, size});
      to += size;
      piece = piece.subspan(size);
    }
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

void TensorQueue::take_name(Lock& lock, const std::string& path, const File& file) {
  if (files_.try_emplace(path, file).second) return;
  // Two writers to one name would finish in any order, and links to it may not be made yet.
  room_.wait(lock, [this] { return idle(); });
  File& former = files_[path];
  if (former && former->path == path) former->state = SavedFile::FileState::gone;
  former = file;
}

void TensorQueue::write(std::string path, const TensorView& view) {
  write_new(std::make_shared<SavedFile>(std::move(path)), view);
}

bool TensorQueue::write_once(std::string path, const TensorView& view, Results& known) {
  if (known.file && link(path, known.file)) return false;
  known.file = std::make_shared<SavedFile>(std::move(path));
  known.crc = write_new(known.file, view);
  return true;
}

std::optional<std::uint32_t> TensorQueue::write_new(const File& file, const TensorView& view) {
  Lock lock(mutex_);
  take_name(lock, file->path, file);
  // A copy of this size takes longer to make than it saves.
  if (view.bytes() > budget_ / 2 || !start_threads()) return write_here(lock, *file, view, std::nullopt);
  ++busy_;
  room_.wait(lock, [&] { return held_ == 0 || held_ + view.bytes() <= budget_; });
  held_ += view.bytes();
  lock.unlock();
  const auto leave = [&] {
    --busy_;
    room_.notify_all();
  };
  try {
    TensorCopy made = copy(view);
    const std::uint32_t crc = made.crc;
    lock.lock();
    enqueue({file, std::move(made)});
    leave();
    return crc;
  } catch (...) {
    if (!lock.owns_lock()) lock.lock();
    held_ -= view.bytes();
    settle(lock, *file, SavedFile::FileState::gone);
    leave();
    throw;
  }
}

void TensorQueue::write(std::string path, TensorCopy copy) {
  const auto file = std::make_shared<SavedFile>(std::move(path));
  Lock lock(mutex_);
  take_name(lock, file->path, file);
  if (start_threads()) {
    held_ += copy.view.bytes();
    enqueue({file, std::move(copy)});
  } else {
    write_here(lock, *file, copy.view, copy.crc);
  }
}

void TensorQueue::enqueue(WriteTask task) {
  tasks_.push_back(std::move(task));
  work_.notify_one();
}

std::optional<std::uint32_t> TensorQueue::write_here(Lock& lock, SavedFile& file, const TensorView& view,
                                                     std::optional<std::uint32_t> crc) {
  ++busy_;
  const bool written = attempt(lock, [&] { crc = write_tensor_file(file.path, view, crc); });
  settle(lock, file, written ? SavedFile::FileState::written : SavedFile::FileState::gone);
  --busy_;
  room_.notify_all();
  return written ? crc : std::nullopt;
}

/// Returns false if the elements have to be written again.
bool TensorQueue::link(const std::string& path, const File& file) {
  Lock lock(mutex_);
  const auto usable = [&] {
    return !refused_ && !file->forgotten && file->state != SavedFile::FileState::gone;
  };
  if (!usable() || file->path == path) return false;
  take_name(lock, path, file);
  if (!usable()) return false;  // waiting for the name may have changed it
  file->links.push_back(path);
  if (file->state == SavedFile::FileState::waiting || file->links.size() > 1) return true;
  if (start_threads()) {
    enqueue({file, {}});
  } else {
    ++busy_;
    make_links(lock, *file);
    --busy_;
    room_.notify_all();
  }
  return true;
}

template <typename Body>
bool TensorQueue::attempt(Lock& lock, Body body) noexcept {
  lock.unlock();
  std::exception_ptr thrown;
  try {
    body();
  } catch (...) {
    thrown = std::current_exception();
  }
  lock.lock();
  if (!thrown) return true;
  ++lost_;
  try {
    if (failures_.size() < kMaxFailures) std::rethrow_exception(thrown);
  } catch (const std::exception& error) {
    try {
      failures_.emplace_back(error.what());
    } catch (const std::bad_alloc&) {
      return false;  // no memory even to report it
    }
  }
  return false;
}

void TensorQueue::settle(Lock& lock, SavedFile& file, SavedFile::FileState state) noexcept {
  file.state = state;
  make_links(lock, file);
}

void TensorQueue::make_links(Lock& lock, SavedFile& file) noexcept {
  while (!file.links.empty()) {
    for (const std::string& path : std::exchange(file.links, {}))
      attempt(lock, [&] { make_link(file, path); });
  }
}

void TensorQueue::make_link(SavedFile& file, const std::string& path) {
  std::string from;
  {
    const std::lock_guard lock(mutex_);
    if (file.state != SavedFile::FileState::written)
      throw IoError(display(path), "is not written: it would be the same file as " + display(file.path));
    from = file.path;
  }
  const Linked linked = link_file(from, path);
  if (linked == Linked::yes) return;
  copy_file(from, path);
  const std::lock_guard lock(mutex_);
  if (linked == Linked::too_many) {
    file.path = path;  // this file has room for more
  } else {
    refused_ = true;
  }
}

void TensorQueue::recycle(TensorCopy copy) {
  if (copy.capacity < kWorthKeeping || copy.capacity > kMaxSpare - spare_bytes_) return;
  try {
    spare_.emplace(copy.capacity, std::move(copy.memory));
    spare_bytes_ += copy.capacity;
  } catch (const std::bad_alloc&) {
    return;  // then this memory is not reused
  }
}

void TensorQueue::work() {
  Lock lock(mutex_);
  for (;;) {
    work_.wait(lock, [this] { return stop_ || !tasks_.empty(); });
    if (tasks_.empty()) return;
    WriteTask task = std::move(tasks_.front());
    tasks_.pop_front();
    ++busy_;
    if (task.copy.memory) {
      const bool written =
          attempt(lock, [&] { write_tensor_file(task.file->path, task.copy.view, task.copy.crc); });
      held_ -= task.copy.view.bytes();
      recycle(std::move(task.copy));
      room_.notify_all();
      settle(lock, *task.file, written ? SavedFile::FileState::written : SavedFile::FileState::gone);
    } else {
      make_links(lock, *task.file);
    }
    --busy_;
    room_.notify_all();
  }
}

std::vector<std::string> TensorQueue::finish() {
  Lock lock(mutex_);
  room_.wait(lock, [this] { return idle(); });
  return std::exchange(failures_, {});
}

std::uint64_t TensorQueue::lost() {
  const std::lock_guard lock(mutex_);
  return lost_;
}

void TensorQueue::forget_files() {
  const std::lock_guard lock(mutex_);
  for (auto& [path, file] : files_) file->forgotten = true;
  files_.clear();
  refused_ = false;
}

}  // namespace msprobe::collector
