// SPDX-License-Identifier: Apache-2.0
// Counts forks. A child made by fork() records nothing, because the open session belongs to its parent.
#pragma once

#include <cstdint>

namespace msprobe::collector {

/// Starts to count.
void watch_forks();
/// The number of forks that led to this process.
std::uint64_t fork_count();

}  // namespace msprobe::collector
