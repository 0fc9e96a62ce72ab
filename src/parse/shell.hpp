// SPDX-License-Identifier: Apache-2.0
// The interactive shell of `msprobe parse`: the six commands of the Python tool's 1.x releases, help and
// exit.
#pragma once

#include "support/command.hpp"

namespace msprobe::parse {

/// Reads commands from standard input until its end, `exit` or `quit`: with prompt, line editing and history
/// if it is a terminal, else line by line without any of these. Results go to standard output. A failed
/// command prints its error to stderr and does not end the shell; if the input is not a terminal, the outcome
/// is a failure. UsageError if there is neither a terminal nor any input.
Outcome run_shell(const Context& context);

}  // namespace msprobe::parse
