// SPDX-License-Identifier: Apache-2.0
#include "mpi/guard.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <string>

#include "program.hpp"
#include "support/log.hpp"

namespace msprobe::mpi {
namespace {

volatile std::sig_atomic_t g_child = 0;
volatile std::sig_atomic_t g_stopped = 0;

void pass_on(int number) {
  g_stopped = 1;
  if (g_child > 0) ::kill(g_child, number);
}

/// A name for this process with its number in MPI and its machine. Launchers put the number into the
/// environment.
std::string process_name() {
  std::string name = "a process";
  for (const char* variable : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"}) {
    const char* const number = std::getenv(variable);
    if (number == nullptr) continue;
    name = fmt::format("process {}", number);
    break;
  }
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) == 0) name += fmt::format(" on {}", host.data());
  return name;
}

int wait_for(pid_t child, const volatile bool* joined) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return kFailure;
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  if (g_stopped != 0) return kInterrupted;
  const int number = WTERMSIG(status);
  const char* const perhaps = number == SIGKILL ? ", perhaps out of memory" : "";
  log_error(fmt::format("{} was killed by signal {} ({}){}: aborting the job", process_name(), number,
                        ::strsignal(number), perhaps));
  const bool open_mpi = std::getenv("OMPI_COMM_WORLD_RANK") != nullptr;
  if (!open_mpi && joined != nullptr && !*joined) ::kill(::getpid(), SIGKILL);
  return kFailure;
}

/// A flag in memory that both processes share; null if there is no memory for it.
volatile bool* shared_flag() {
  void* const page = ::mmap(nullptr, 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return page == MAP_FAILED ? nullptr : static_cast<volatile bool*>(page);
}

}  // namespace

int guarded(const std::function<int(const std::function<void()>& joined)>& body) {
  volatile bool* const joined = shared_flag();
  const auto join = [joined] {
    if (joined != nullptr) *joined = true;
  };
  // Signals wait until the child is known, because they have to be passed on to it.
  sigset_t stops;
  sigset_t before;
  sigemptyset(&stops);
  sigaddset(&stops, SIGINT);
  sigaddset(&stops, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &stops, &before);
  const pid_t guard = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    // The child gets its own process group. A signal from the launcher to the group then arrives only once,
    // through the guard.
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    if (::getppid() != guard) ::_exit(kFailure);
    return body(join);
  }
  if (child < 0) {
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    return body(join);  // no further process is available: run without a guard
  }
  g_child = child;
  struct sigaction action {};
  action.sa_handler = pass_on;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  return wait_for(child, joined);
}

}  // namespace msprobe::mpi
