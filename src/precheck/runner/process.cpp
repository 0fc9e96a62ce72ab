// SPDX-License-Identifier: Apache-2.0
#include "precheck/runner/process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "precheck/runner/fused_references.hpp"
#include "precheck/runner/mindspore_runner.hpp"
#include "precheck/runner/op_runner.hpp"
#include "support/descriptor.hpp"
#include "support/error.hpp"
#include "support/interrupt.hpp"

namespace msprobe::precheck {
namespace {

constexpr std::size_t kMaxAnswer = std::size_t{16} << 20;
constexpr std::size_t kKeptMessages = 4096;
constexpr int kFirstOwnDescriptor = 10;
constexpr int kLook = 100;  // milliseconds between looks at Ctrl-C
// The descriptors that op_runner.py expects.
constexpr int kRequests = 3;
constexpr int kAnswers = 4;
constexpr int kInputs = 5;
constexpr int kOutputs = 6;
constexpr int kScript = 7;
// The loader removes the current folder from the search path, so that the runner imports nothing from it.
constexpr const char* kLoader =
    "import sys; sys.path[:] = [p for p in sys.path if p]; import os; "
    "exec(compile(os.pread(7, 1 << 20, 0).split(b'\\0')[0], '{}', 'exec'))";

/// Moves a descriptor away from the numbers that a runner uses.
Descriptor moved_up(int number) {
  const Descriptor old(number);
  const int moved = ::fcntl(number, F_DUPFD_CLOEXEC, kFirstOwnDescriptor);
  if (moved < 0) throw IoError("a runner", std::strerror(errno));
  return Descriptor(moved);
}

std::pair<Descriptor, Descriptor> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw IoError("a runner", std::strerror(errno));
  Descriptor writer(ends[1]);
  Descriptor reader = moved_up(ends[0]);
  return {std::move(reader), moved_up(writer.release())};
}

/// A file, shared by all runners, with the runner's program, followed by the references and, if it calls
/// MindSpore, the code for that, each after a zero byte.
int script_file(Framework framework) {
  static std::mutex mutex;
  static std::map<Framework, std::unique_ptr<SharedFile>> files;
  const std::lock_guard lock(mutex);
  std::unique_ptr<SharedFile>& file = files[framework];
  if (!file) {
    auto made = std::make_unique<SharedFile>();
    std::string program = std::string(kOpRunner) + '\0' + std::string(kFusedReferences);
    if (framework == Framework::mindspore) program += '\0' + std::string(kMindsporeRunner);
    made->append(std::as_bytes(std::span(program)));
    file = std::move(made);
  }
  return file->descriptor();
}

class SpawnActions {
 public:
  SpawnActions() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
    posix_spawnattr_setflags(&attributes_,
                             POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setpgroup(&attributes_, 0);  // Ctrl-C is for us; and all that it starts can be ended
    sigset_t signals;
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes_, &signals);
    for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGALRM}) sigaddset(&signals, signal);
    posix_spawnattr_setsigdefault(&attributes_, &signals);
  }
  ~SpawnActions() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  SpawnActions(const SpawnActions&) = delete;
  SpawnActions& operator=(const SpawnActions&) = delete;

  void give(int ours, int theirs) { posix_spawn_file_actions_adddup2(&actions_, ours, theirs); }
  void give_nothing(int theirs) {
    posix_spawn_file_actions_addopen(&actions_, theirs, "/dev/null", O_RDONLY, 0);
  }
  int spawn(pid_t& process, const std::string& program, std::vector<std::string> arguments) const {
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    return posix_spawnp(&process, program.c_str(), &actions_, &attributes_, pointers.data(), environ);
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

std::string signal_text(int number) {
  const char* name = sigabbrev_np(number);
  const std::string_view why = number == SIGKILL ? ", as when the system runs out of memory" : "";
  return name == nullptr ? fmt::format("died of signal {}", number)
                         : fmt::format("died of signal {} (SIG{}){}", number, name, why);
}

}  // namespace

RunnerProcess::RunnerProcess(const RunnerStart& start, SharedFile& inputs, SharedFile& outputs)
    : RunnerProcess(
          {.name = "op_runner.py",
           .text = script_file(start.framework),
           .python = start.python,
           .arguments = {start.device, fmt::format("{}", start.memory_share), start.jit ? "jit" : "plain",
                         start.references, start.framework == Framework::mindspore ? "mindspore" : "pytorch"},
           .inputs = inputs.descriptor(),
           .outputs = outputs.descriptor()}) {}

RunnerProcess::RunnerProcess(const OwnProgram& program) {
  auto [request_reader, request_writer] = make_pipe();
  auto [answer_reader, answer_writer] = make_pipe();
  auto [noise_reader, noise_writer] = make_pipe();
  SpawnActions actions;
  actions.give_nothing(STDIN_FILENO);
  actions.give(noise_writer.get(), STDOUT_FILENO);
  actions.give(noise_writer.get(), STDERR_FILENO);
  actions.give(request_reader.get(), kRequests);
  actions.give(answer_writer.get(), kAnswers);
  if (program.inputs >= 0) actions.give(program.inputs, kInputs);
  if (program.outputs >= 0) actions.give(program.outputs, kOutputs);
  actions.give(program.text, kScript);
  std::vector<std::string> words = {program.python, "-c", fmt::format(fmt::runtime(kLoader), program.name)};
  words.insert(words.end(), program.arguments.begin(), program.arguments.end());
  const int problem = actions.spawn(process_, program.python, std::move(words));
  if (problem != 0) throw IoError(program.python, std::strerror(problem));
  for (const Descriptor* end : {&request_writer, &answer_reader, &noise_reader})
    ::fcntl(end->get(), F_SETFL, O_NONBLOCK);
  requests_ = request_writer.release();
  answers_ = answer_reader.release();
  noise_ = noise_reader.release();
}

RunnerProcess::~RunnerProcess() {
  close_all();
  if (process_ > 0) {
    ::kill(-process_, SIGKILL);
    ::kill(process_, SIGKILL);
    while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
}

void RunnerProcess::close_all() noexcept {
  for (int* descriptor : {&requests_, &answers_, &noise_}) {
    if (*descriptor >= 0) ::close(std::exchange(*descriptor, -1));
  }
}

void RunnerProcess::read_messages() {
  std::array<char, 4096> piece;
  const ssize_t got = ::read(noise_, piece.data(), piece.size());
  if (got > 0) {
    messages_.append(piece.data(), static_cast<std::size_t>(got));
    if (messages_.size() > 2 * kKeptMessages) messages_.erase(0, messages_.size() - kKeptMessages);
  } else if (got == 0) {
    ::close(std::exchange(noise_, -1));
  }
}

bool RunnerProcess::wait(bool for_writing, Clock::time_point end, std::chrono::milliseconds limit) {
  for (;;) {
    check_interrupt();
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    if (limit.count() > 0 && left.count() <= 0)
      throw RunnerLost(fmt::format("did not return within {} s", limit.count() / 1000));
    // An answer that begins before the request is complete does not stop the writing, but the end of the
    // runner does.
    std::array<pollfd, 3> watched{{{answers_, static_cast<short>(for_writing ? 0 : POLLIN), 0},
                                   {noise_, POLLIN, 0},
                                   {for_writing ? requests_ : -1, POLLOUT, 0}}};
    const int pause =
        limit.count() > 0 ? static_cast<int>(std::min<std::int64_t>(left.count(), kLook)) : kLook;
    if (::poll(watched.data(), watched.size(), std::max(pause, 1)) <= 0) continue;
    if (watched[1].revents != 0) read_messages();
    if (for_writing && watched[2].revents != 0) return true;
    if (watched[0].revents != 0) return true;
  }
}

void RunnerProcess::send(const std::string& line, std::chrono::milliseconds limit) {
  const Clock::time_point end = Clock::now() + limit;
  std::string_view left = line;
  while (!left.empty()) {
    wait(true, end, limit);
    const ssize_t written = ::write(requests_, left.data(), left.size());
    if (written >= 0) {
      left.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EAGAIN && errno != EINTR) {
      throw RunnerLost(fate());
    }
  }
}

bool RunnerProcess::take_line(std::string& line) {
  const std::size_t line_end = buffer_.find('\n', searched_);
  if (line_end == std::string::npos) {
    searched_ = buffer_.size();
    if (buffer_.size() > kMaxAnswer) throw RunnerLost("sends an answer without end");
    return false;
  }
  line = buffer_.substr(0, line_end);
  buffer_.erase(0, line_end + 1);
  searched_ = 0;
  return true;
}

void RunnerProcess::read_answers() {
  std::array<char, 65536> piece;
  const ssize_t got = ::read(answers_, piece.data(), piece.size());
  if (got > 0) {
    buffer_.append(piece.data(), static_cast<std::size_t>(got));
  } else if (got == 0) {
    throw RunnerLost(fate());
  }
}

std::string RunnerProcess::receive(std::chrono::milliseconds limit) {
  const Clock::time_point end = Clock::now() + limit;
  std::string line;
  while (!take_line(line)) {
    wait(false, end, limit);
    read_answers();
  }
  return line;
}

std::optional<std::string> RunnerProcess::receive_soon(std::chrono::milliseconds limit) {
  const Clock::time_point end = Clock::now() + limit;
  std::string line;
  while (!take_line(line)) {
    check_interrupt();
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    std::array<pollfd, 2> watched{{{answers_, POLLIN, 0}, {noise_, POLLIN, 0}}};
    if (::poll(watched.data(), watched.size(), static_cast<int>(std::max<std::int64_t>(left.count(), 0))) <=
        0)
      return std::nullopt;
    if (watched[1].revents != 0) read_messages();
    if (watched[0].revents != 0) read_answers();
  }
  return line;
}

void RunnerProcess::end(std::chrono::milliseconds limit) noexcept {
  close_all();
  const Clock::time_point end = Clock::now() + limit;
  while (process_ > 0 && Clock::now() < end) {
    if (::waitpid(process_, nullptr, WNOHANG) == process_) {
      ::kill(-process_, SIGKILL);
      process_ = -1;
      return;
    }
    ::poll(nullptr, 0, kLook / 10);
  }
}

std::string RunnerProcess::fate() {
  // A runner that closed its answers has ended, or will end soon.
  for (int i = 0; i < 20 && noise_ >= 0; ++i) {
    std::array<pollfd, 1> watched{{{noise_, POLLIN, 0}}};
    if (::poll(watched.data(), 1, kLook) <= 0) break;
    read_messages();
  }
  int status = 0;
  pid_t ended = 0;
  for (int i = 0; i < 20 && ended == 0; ++i) {
    ended = ::waitpid(process_, &status, WNOHANG);
    if (ended == 0) ::poll(nullptr, 0, kLook);
  }
  if (ended != process_) return "no longer answers";
  ::kill(-process_, SIGKILL);
  process_ = -1;
  if (WIFSIGNALED(status)) return signal_text(WTERMSIG(status));
  return fmt::format("ended with status {}", WEXITSTATUS(status));
}

}  // namespace msprobe::precheck
