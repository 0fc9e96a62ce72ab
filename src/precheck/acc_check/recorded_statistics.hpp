// SPDX-License-Identifier: Apache-2.0
// Judges recorded outputs of which a dump has only statistics.
#pragma once

#include <string>

#include "dump/entry.hpp"
#include "precheck/judgement/output.hpp"

namespace msprobe::precheck {

/// Compares maximum, minimum, mean and norm of each recorded output with those of the reference, within the
/// changes that rounding to the recorded type and adding up in float32 may cause. `prefix`: of the rows'
/// names, with a dot at its end. `first_alone`: only the first of the recorded outputs counts. NotRebuilt if
/// the outputs do not pair, or have no statistics either.
CallJudgement judge_recorded_statistics(const std::string& prefix, const dump::Entry& entry,
                                        const CallOutput& reference, bool first_alone = false);

}  // namespace msprobe::precheck
