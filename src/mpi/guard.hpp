// SPDX-License-Identifier: Apache-2.0
// Splits a process of a job into two: one works, the other waits and reports if the first is killed. No other
// process could report it: MPI ends the others, too, and its own message names no program.
#pragma once

#include <functional>

namespace msprobe::mpi {

/// Runs `body` in a child and returns its exit status. If a signal ends the child, this process prints one
/// line and returns a failure. Signals that ask to stop are passed on to the child; it does not outlive this
/// process. The child calls `joined` when it is part of the job. If it is killed earlier, this process kills
/// itself, too, except under Open MPI: if it ended with an exit status, MPICH's launcher would wait
/// for the other processes, which wait for this one.
int guarded(const std::function<int(const std::function<void()>& joined)>& body);

}  // namespace msprobe::mpi
