// SPDX-License-Identifier: Apache-2.0
// Ctrl-C as a flag that long work checks.
#pragma once

namespace msprobe {

/// From now on, SIGINT and SIGTERM only set the flag (a second signal ends the process at once); SIGPIPE is
/// ignored, so that a closed pipe becomes a failed write.
void catch_signals();

/// True if the process was asked to stop.
bool interrupted() noexcept;

/// Throws Interrupted if the process was asked to stop.
void check_interrupt();

}  // namespace msprobe
