// SPDX-License-Identifier: Apache-2.0
// In a child made by fork() nothing is recorded: what was open is its parent's.
#pragma once

#include <cstdint>

namespace msprobe::collector {

/// Counts from now on.
void watch_forks();
/// The forks that lead to this process.
std::uint64_t fork_count();

}  // namespace msprobe::collector
