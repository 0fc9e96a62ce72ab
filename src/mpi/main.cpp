// SPDX-License-Identifier: Apache-2.0
// msprobe-mpi: the same program, in as many processes as mpirun starts.
#include <unistd.h>

#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "mpi/guard.hpp"
#include "mpi/messages.hpp"
#include "mpi/mpi_team.hpp"
#include "program.hpp"
#include "report/terminal.hpp"
#include "support/error.hpp"
#include "support/interrupt.hpp"
#include "support/out_of_memory.hpp"
#include "support/team.hpp"

namespace msprobe::mpi {
namespace {

/// Ends the process at once and silently if it was asked to stop: all processes are asked, and the launcher
/// reports it.
[[noreturn]] void stop() {
  ::_exit(kInterrupted);
}

int run_root(Messages& messages, MpiTeam& team, const std::vector<std::string>& words) {
  const int status = report_failures([&] {
    try {
      return run_program(words);
    } catch (const Interrupted&) {
      stop();
    }
  });
  if (!team.dismiss(status < kFailure)) messages.give_up(status);
  return status;
}

/// Runs a process other than the root. Its exit status does not matter, since the root decides that of the
/// job.
int help_root(MpiTeam& team, const std::vector<std::string>& words) {
  Failure failure;
  try {
    run_program(words);
  } catch (const Interrupted&) {
    stop();
  } catch (const Dismissed&) {
    // The root has ended.
  } catch (const std::exception& error) {
    failure = failure_of(error);
  }
  team.leave(failure);
  return kClean;
}

int run_process(const std::vector<std::string>& words, const std::function<void()>& joined) {
  prepare_for_no_memory(kFailure);
  report::take_terminals_away();  // no person sees the terminal that a launcher gives its processes
  return report_failures([&] {
    try {
      Messages messages;
      joined();
      catch_signals();  // earlier, a signal must end the process, because MPI ignores them while it starts
      MpiTeam team(messages);
      set_team(&team);
      const int status = team.is_root() ? run_root(messages, team, words) : help_root(team, words);
      messages.finish();
      return status;
    } catch (const Interrupted&) {
      stop();
    }
  });
}

}  // namespace
}  // namespace msprobe::mpi

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + (argc > 0 ? 1 : 0), argv + argc);
  return msprobe::mpi::guarded(
      [&](const std::function<void()>& joined) { return msprobe::mpi::run_process(words, joined); });
}
