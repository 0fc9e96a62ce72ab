// SPDX-License-Identifier: Apache-2.0
// Messages between the processes of a job, as bytes of any length. Who waits looks for signals and leaves the
// processor to those who work: MPI's own waiting does neither.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace msprobe::mpi {

/// From MPI_Init to MPI_Finalize, once in a process. Any thread may call.
class Messages {
 public:
  Messages();
  /// Without finish() the job is not ended in an orderly way: for processes that stop at once.
  ~Messages() = default;
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  std::size_t process() const { return process_; }
  std::size_t processes() const { return processes_; }
  const std::string& host() const { return host_; }
  /// The root's number, in all processes. All must call it.
  long long same_for_all(long long number) const;

  /// `tag`: which of the receiver's queues. Interrupted if the process was asked to stop.
  void send(std::size_t to, int tag, std::string_view bytes);
  /// The next message of this tag that is there as a whole; nothing if there is none yet.
  struct Message {
    std::size_t from = 0;
    std::string bytes;
  };
  std::optional<Message> look(int tag);
  /// Waits for it. Interrupted.
  Message receive(int tag);

  /// When all processes have come here.
  void finish();
  /// Ends all of them, wherever they are: the launcher's status is `status` (with MPICH's, a process that
  /// merely leaves makes it that of the signal which ends the others).
  [[noreturn]] void give_up(int status);

 private:
  void send_piece(std::size_t to, int tag, std::string_view bytes);

  std::size_t process_ = 0;
  std::size_t processes_ = 1;
  std::string host_;
  std::mutex calls_;    // of MPI: one at a time
  std::mutex sending_;  // of one message's pieces
  struct Partial {
    std::string bytes;
    std::size_t size = 0;
  };
  std::map<std::pair<int, int>, Partial> partial_;  // by sender and tag
};

/// Sleeps longer and longer while there is nothing to do; Interrupted if the process was asked to stop.
class Patience {
 public:
  void wait();
  void reset() { microseconds_ = kShortest; }

 private:
  static constexpr unsigned kShortest = 20;
  static constexpr unsigned kLongest = 1000;
  unsigned microseconds_ = kShortest;
};

}  // namespace msprobe::mpi
