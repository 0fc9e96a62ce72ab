// SPDX-License-Identifier: Apache-2.0
// Recorded outputs of which a dump has statistics alone.
#pragma once

#include <string>

#include "dump/entry.hpp"
#include "precheck/judgement/output.hpp"

namespace msprobe::precheck {

/// Maximum, minimum, mean and norm of each recorded output against those of the reference, within what
/// rounding to the recorded type, and summing up in float32, may have changed. `prefix`: of the rows' names,
/// with a dot at its end. `first_alone`: of the recorded outputs only the first counts. NotRebuilt if the
/// outputs do not pair, or have no statistics either.
Judgement judge_recorded_statistics(const std::string& prefix, const dump::Entry& entry,
                                    const Output& reference, bool first_alone = false);

}  // namespace msprobe::precheck
