// SPDX-License-Identifier: Apache-2.0
// One runner: a Python that calls operations, in a separate process that may crash, hang, send wrong answers
// or too much output.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "precheck/runner/shared_file.hpp"
#include "support/command.hpp"

namespace msprobe::precheck {

/// The runner cannot be used any more. The text says what it did, for a row.
class RunnerLost : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct RunnerStart {
  std::string python;       // a path, or a name that is looked for in PATH
  std::string device;       // "auto", "cpu", "cuda:1"; empty: only references are computed, on the CPU
  double memory_share = 1;  // of the machine's memory, at most, where it calls on the CPU
  bool jit = false;         // operations are compiled, on an NPU
  std::string references;   // of the user, as JSON that op_runner.py takes; empty: none
  Framework framework = Framework::pytorch;  // whose operations it calls

  bool operator==(const RunnerStart&) const = default;
};

/// A Python program that is built into this command.
struct OwnProgram {
  std::string name;    // for Python's messages
  int text = -1;       // descriptor of a file with its text, which ends at a zero byte, if any
  std::string python;  // a path, or a name that is looked for in PATH
  std::vector<std::string> arguments;  // after it
  int inputs = -1;                     // descriptors that it gets, too; negative: none
  int outputs = -1;
};

class RunnerProcess {
 public:
  /// Starts it. IoError if the system cannot.
  RunnerProcess(const RunnerStart& start, SharedFile& inputs, SharedFile& outputs);
  explicit RunnerProcess(const OwnProgram& program);
  /// Ends the runner at once, with all processes that it has started.
  ~RunnerProcess();
  RunnerProcess(const RunnerProcess&) = delete;
  RunnerProcess& operator=(const RunnerProcess&) = delete;

  /// Sends a line. RunnerLost, Interrupted.
  void send(const std::string& line, std::chrono::milliseconds limit);
  /// The next line. RunnerLost if no line comes within the limit; Interrupted.
  std::string receive(std::chrono::milliseconds limit);
  /// The next line if it comes within the limit. RunnerLost if no line can come any more; Interrupted.
  std::optional<std::string> receive_soon(std::chrono::milliseconds limit);
  /// Stops sending, so that the runner ends by itself; waits up to the limit for that.
  void end(std::chrono::milliseconds limit) noexcept;
  /// The end of what it wrote to standard output and standard error.
  const std::string& messages() const { return messages_; }

 private:
  using Clock = std::chrono::steady_clock;

  bool take_line(std::string& line);
  void read_answers();
  /// Waits until the requests can be written or answers be read; reads messages meanwhile.
  bool wait(bool for_writing, Clock::time_point end, std::chrono::milliseconds limit);
  void read_messages();
  /// Says how the runner ended.
  std::string fate();
  void close_all() noexcept;

  pid_t process_ = -1;
  int requests_ = -1;
  int answers_ = -1;
  int noise_ = -1;
  std::string buffer_;
  std::size_t searched_ = 0;
  std::string messages_;
};

}  // namespace msprobe::precheck
