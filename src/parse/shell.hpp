// SPDX-License-Identifier: Apache-2.0
// The interactive shell of `msprobe parse`.
#pragma once

#include "support/command.hpp"

namespace msprobe::parse {

/// What `msprobe parse` does without -d.
Outcome run_shell(const Context& context);

}  // namespace msprobe::parse
