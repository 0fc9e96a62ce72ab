// SPDX-License-Identifier: Apache-2.0
// The end of a program that gets no more memory: one line and an exit status, wherever it happens.
#pragma once

namespace msprobe {

/// Puts memory aside that the first failure gives back, so that unwinding and messages have some, and sees to
/// it that a failure in a place that must not throw ends with `status` and a line as well. For main() alone:
/// a library does not decide how a process ends.
void prepare_for_no_memory(int status);

}  // namespace msprobe
