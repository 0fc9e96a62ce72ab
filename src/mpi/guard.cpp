// SPDX-License-Identifier: Apache-2.0
#include "mpi/guard.hpp"

#include <fmt/format.h>
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

/// As MPI calls this process: its number and machine. Launchers put the number into the environment.
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

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return kFailure;
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  if (g_stopped != 0) return kInterrupted;
  const int number = WTERMSIG(status);
  const char* const perhaps = number == SIGKILL ? ", perhaps for want of memory" : "";
  log_error(fmt::format("{} was ended by signal {} ({}){}: the job is given up", process_name(), number,
                        ::strsignal(number), perhaps));
  return kFailure;
}

}  // namespace

int guarded(const std::function<int()>& body) {
  // Until the child is known nothing is passed on, so signals wait.
  sigset_t stops;
  sigset_t before;
  sigemptyset(&stops);
  sigaddset(&stops, SIGINT);
  sigaddset(&stops, SIGTERM);
  ::sigprocmask(SIG_BLOCK, &stops, &before);
  const pid_t guard = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    // A group of its own: what a launcher sends to groups comes once, from the guard.
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    if (::getppid() != guard) ::_exit(kFailure);
    return body();
  }
  if (child < 0) {
    ::sigprocmask(SIG_SETMASK, &before, nullptr);
    return body();  // no process more can be had: then without
  }
  g_child = child;
  struct sigaction action {};
  action.sa_handler = pass_on;
  sigemptyset(&action.sa_mask);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  return wait_for(child);
}

}  // namespace msprobe::mpi
