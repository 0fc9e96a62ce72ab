// SPDX-License-Identifier: Apache-2.0
// Call stacks: known by their code positions, turned into text once.
#pragma once

#include "state.hpp"

namespace msprobe::python {

/// Gives the event the stack of the running Python code. Failures are logged.
void use_current_stack(const msprobe_event& event);
/// Forgets what is known (at the end of the session).
void forget_stacks();

}  // namespace msprobe::python
