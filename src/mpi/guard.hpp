// SPDX-License-Identifier: Apache-2.0
// A process of a job in two: one that works, and one that waits and tells if the first is killed. Nobody else
// could: MPI ends the other processes, too, and its own words name no program.
#pragma once

#include <functional>

namespace msprobe::mpi {

/// Runs `body` in a child and returns its exit status. A child that a signal ended is told of in one line,
/// and counts as failed. Signals that ask to stop are passed on to it; it does not outlive this process.
/// The child calls `joined` when it is part of the job. Where it is killed before, this process ends as it
/// did, unless under Open MPI: after an exit status MPICH's launcher waits for the others, which wait for
/// this one.
int guarded(const std::function<int(const std::function<void()>& joined)>& body);

}  // namespace msprobe::mpi
