// SPDX-License-Identifier: Apache-2.0
// How a command ends that has a gate (--fail-on): what nobody could judge does not pass for clean.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "support/command.hpp"

namespace msprobe {

/// Tells what was not judged, a line each ("step0/rank1: the dump has no entries"): as an error at a gate,
/// else as a warning. Of many the first.
void tell_not_judged(std::string_view fail_on, const std::vector<std::string>& not_judged);

/// `findings`: those of the level that was asked for; they go ahead of what was not judged, which is a
/// failure.
Outcome gate_outcome(std::string_view fail_on, bool findings, const std::vector<std::string>& not_judged);

/// Both.
Outcome end_at_gate(std::string_view fail_on, bool findings, const std::vector<std::string>& not_judged);

}  // namespace msprobe
