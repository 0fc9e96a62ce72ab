// SPDX-License-Identifier: Apache-2.0
// A process of a job in two: one that works, and one that waits and tells if the first is killed. Nobody else
// could: MPI ends the other processes, too, and its own words name no program.
#pragma once

#include <functional>

namespace msprobe::mpi {

/// Runs `body` in a child and returns its exit status. A child that a signal ended is told of in one line,
/// and counts as failed. Signals that ask to stop are passed on to it; it does not outlive this process.
int guarded(const std::function<int()>& body);

}  // namespace msprobe::mpi
