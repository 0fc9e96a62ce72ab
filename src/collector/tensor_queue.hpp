// SPDX-License-Identifier: Apache-2.0
// Writes tensor files in the background, from copies, in a bounded amount of memory. If another file of the
// step has the same contents, the new file becomes a second name for it.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "collector/reuse.hpp"
#include "collector/tensor_view.hpp"

namespace msprobe::collector {

/// A tensor's elements in separate memory, in row-major order.
struct TensorCopy {
  TensorView view;
  std::unique_ptr<std::byte[]> memory;
  std::size_t capacity = 0;
  std::uint32_t crc = 0;
};

/// The state of a tensor's file. The lock of its queue protects all of it.
struct SavedFile {
  enum class FileState : std::uint8_t { waiting, written, gone };
  explicit SavedFile(std::string name) : path(std::move(name)) {}

  std::string path;
  FileState state = FileState::waiting;
  bool forgotten = false;          // it gets no further names
  std::vector<std::string> links;  // names to add when it is written
};

class TensorQueue {
 public:
  TensorQueue() = default;
  /// Writes all waiting files.
  ~TensorQueue();
  TensorQueue(const TensorQueue&) = delete;
  TensorQueue& operator=(const TensorQueue&) = delete;

  /// The memory for copies that wait to be written; a caller that brings more has to wait. With 0, the
  /// default, the caller writes each tensor itself.
  void set_budget(std::uint64_t bytes);

  /// Copies the elements before it returns, or writes them at once if they are too many to copy.
  void write(std::string path, const TensorView& view);
  /// The same, unless `known` names a file with the same elements: then only adds a name. Returns true for a
  /// new file; then `known` receives it and the checksum of its elements.
  bool write_once(std::string path, const TensorView& view, Results& known);
  /// Writes a copy that was made before, without waiting.
  void write(std::string path, TensorCopy copy);
  /// Makes a copy without waiting for room.
  TensorCopy copy(const TensorView& view);
  /// Waits until everything is written. Returns the failures since the last time, one line each.
  std::vector<std::string> finish();
  /// The number of all files that could not be written.
  std::uint64_t lost();
  /// From now on no known file gets another name: the files are elsewhere, or not of this step.
  void forget_files();

 private:
  using File = std::shared_ptr<SavedFile>;
  using Lock = std::unique_lock<std::mutex>;
  struct WriteTask {
    File file;
    TensorCopy copy;  // to be written; empty: the file only gets its links
  };
  /// Called with the lock held. Returns false if no thread runs.
  bool start_threads();
  /// Called with the lock held. Frees a name that was used before in this step.
  void take_name(Lock& lock, const std::string& path, const File& file);
  bool idle() const { return tasks_.empty() && busy_ == 0; }
  bool link(const std::string& path, const File& file);
  /// The checksum of the written elements; nothing if writing failed.
  std::optional<std::uint32_t> write_new(const File& file, const TensorView& view);
  /// These are called with the lock held.
  void enqueue(WriteTask task);
  std::optional<std::uint32_t> write_here(Lock& lock, SavedFile& file, const TensorView& view,
                                          std::optional<std::uint32_t> crc);
  void work();
  /// Sets the state that the file's links wait for.
  void settle(Lock& lock, SavedFile& file, SavedFile::FileState state) noexcept;
  void make_links(Lock& lock, SavedFile& file) noexcept;
  void make_link(SavedFile& file, const std::string& path);
  /// Calls `body()` without the lock. If it throws, finish() reports it, and attempt() returns false.
  template <typename Body>
  bool attempt(Lock& lock, Body body) noexcept;
  void recycle(TensorCopy copy);

  std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable room_;
  std::uint64_t budget_ = 0;
  std::deque<WriteTask> tasks_;
  std::uint64_t held_ = 0;  // bytes of tasks that wait or are being written
  std::size_t busy_ = 0;    // threads that write, or copy elements for a task
  bool stop_ = false;
  bool tried_ = false;    // the start of threads was tried
  bool refused_ = false;  // the file system supports no second names
  std::vector<std::thread> threads_;
  std::multimap<std::size_t, std::unique_ptr<std::byte[]>> spare_;  // memory to use again, by its size
  std::uint64_t spare_bytes_ = 0;
  std::vector<std::string> failures_;
  std::uint64_t lost_ = 0;
  std::unordered_map<std::string, File> files_;  // of this step, by every name
};

}  // namespace msprobe::collector
