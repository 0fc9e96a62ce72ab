// SPDX-License-Identifier: Apache-2.0
// Ends a program that gets no more memory, with one line and an exit status, wherever it happens.
#pragma once

namespace msprobe {

/// Reserves memory that is freed at the first failure, so that unwinding and messages have some. A failure in
/// a place that must not throw ends with `status` and a line as well. Only main() may call it, because a
/// library does not decide how a process ends.
void prepare_for_no_memory(int status);

}  // namespace msprobe
