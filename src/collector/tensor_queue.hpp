// SPDX-License-Identifier: Apache-2.0
// Writes tensor files behind the program's back, from copies, in a bounded amount of memory. A file that
// holds what another one of the step does becomes a second name of that one.
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

/// A tensor's elements in memory of its own, in row-major order.
struct TensorCopy {
  TensorView view;
  std::unique_ptr<std::byte[]> memory;
  std::size_t capacity = 0;
  std::uint32_t crc = 0;
};

/// A tensor's file, as far as it has come. All of it under the lock of its queue.
struct SavedFile {
  enum class State : std::uint8_t { waiting, written, gone };
  explicit SavedFile(std::string name) : path(std::move(name)) {}

  std::string path;
  State state = State::waiting;
  bool forgotten = false;          // it gets no other names any more
  std::vector<std::string> links;  // that it gets as soon as it is written
};

class TensorQueue {
 public:
  TensorQueue() = default;
  /// Writes what waits.
  ~TensorQueue();
  TensorQueue(const TensorQueue&) = delete;
  TensorQueue& operator=(const TensorQueue&) = delete;

  /// Memory of copies that wait to be written; who brings more waits, too. 0, as long as nothing is said: who
  /// brings a tensor writes it.
  void set_budget(std::uint64_t bytes);

  /// The elements are copied before it returns, or written at once where they are too many for that.
  void write(std::string path, const TensorView& view);
  /// As above, unless `known` names a file with the same elements: that gets another name. True if there is a
  /// new file; then `known` has it, and the checksum of its elements.
  bool write_once(std::string path, const TensorView& view, Results& known);
  /// A copy made before; it does not wait.
  void write(std::string path, TensorCopy copy);
  /// Room for the copy is not waited for.
  TensorCopy copy(const TensorView& view);
  /// Waits until all is written. Returns what failed since the last time, one line each.
  std::vector<std::string> finish();
  /// Files that could not be written, of all.
  std::uint64_t lost();
  /// From now on no file gets another name: they are elsewhere, or are not of this step.
  void forget_files();

 private:
  using File = std::shared_ptr<SavedFile>;
  using Lock = std::unique_lock<std::mutex>;
  struct Task {
    File file;
    TensorCopy copy;  // is written; nothing: the file only gets its links
  };
  /// With the lock held; false: there are none.
  bool start_threads();
  /// With the lock held: a name that was given before in this step loses what it stood for.
  void take_name(Lock& lock, const std::string& path, const File& file);
  bool idle() const { return tasks_.empty() && busy_ == 0; }
  bool link(const std::string& path, const File& file);
  /// The checksum of what is written; nothing if it could not be.
  std::optional<std::uint32_t> write_new(const File& file, const TensorView& view);
  /// With the lock held, as below.
  void enqueue(Task task);
  std::optional<std::uint32_t> write_here(Lock& lock, SavedFile& file, const TensorView& view,
                                          std::optional<std::uint32_t> crc);
  void work();
  /// What the file's links wait for has happened.
  void settle(Lock& lock, SavedFile& file, SavedFile::State state) noexcept;
  void make_links(Lock& lock, SavedFile& file) noexcept;
  void make_link(SavedFile& file, const std::string& path);
  /// Calls `body()` with the lock; what it throws is told by finish(). False if it did.
  template <typename Body>
  bool attempt(Lock& lock, Body body) noexcept;
  void recycle(TensorCopy copy);

  std::mutex mutex_;
  std::condition_variable work_;
  std::condition_variable room_;
  std::uint64_t budget_ = 0;
  std::deque<Task> tasks_;
  std::uint64_t held_ = 0;  // bytes of tasks that wait or are written
  std::size_t busy_ = 0;    // threads that write, or copy what is to be written
  bool stop_ = false;
  bool tried_ = false;    // to start threads
  bool refused_ = false;  // the file system gives no second names
  std::vector<std::thread> threads_;
  std::multimap<std::size_t, std::unique_ptr<std::byte[]>> spare_;  // memory to use again, by its size
  std::uint64_t spare_bytes_ = 0;
  std::vector<std::string> failures_;
  std::uint64_t lost_ = 0;
  std::unordered_map<std::string, File> files_;  // of this step, by every name
};

}  // namespace msprobe::collector
