// SPDX-License-Identifier: Apache-2.0
// Messages between the processes of a job, as bytes of any length. A waiting process checks for signals and
// leaves the processor to working ones; MPI's own waiting does neither.
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
  /// Without finish() the job does not end in an orderly way; this is for processes that stop at once.
  ~Messages() = default;
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  std::size_t process() const { return process_; }
  std::size_t processes() const { return processes_; }
  const std::string& host() const { return host_; }
  /// Returns the root's number in all processes. All processes must call it.
  long long same_for_all(long long number) const;

  /// `tag`: the receiver's queue. Interrupted if the process was asked to stop.
  void send(std::size_t to, int tag, std::string_view bytes);
  /// The next complete message of this tag; nothing if no message has arrived yet.
  struct Message {
    std::size_t from = 0;
    std::string bytes;
  };
  std::optional<Message> look(int tag);
  /// Waits for the next message. Interrupted.
  Message receive(int tag);

  /// Returns after all processes have called it.
  void finish();
  /// Ends all processes of the job; the launcher's status is `status`. (With MPICH, if a process merely
  /// exits, the launcher's status is that of the signal which ends the others.)
  [[noreturn]] void give_up(int status);

 private:
  void send_piece(std::size_t to, int tag, std::string_view bytes);

  std::size_t process_ = 0;
  std::size_t processes_ = 1;
  std::string host_;
  std::mutex calls_;    // only one thread may call MPI at a time
  std::mutex sending_;  // keeps the pieces of one message together
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
