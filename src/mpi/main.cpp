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

/// Who was asked to stop does so at once and without a word: all processes are, and the launcher tells.
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

/// Its exit status is that of the job, which the root knows.
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
  report::take_terminals_away();  // what a launcher gives its processes for one nobody looks at
  return report_failures([&] {
    try {
      Messages messages;
      joined();
      catch_signals();  // before that a signal ends the process, as MPI looks for none while it begins
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
