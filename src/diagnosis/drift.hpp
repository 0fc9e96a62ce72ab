// SPDX-License-Identifier: Apache-2.0
// How far the runs are apart before the first step that was recorded.
#pragma once

#include "diagnosis/walk.hpp"

namespace msprobe::diagnosis {

/// Fills Walk::drift from the differences of the parameters.
void assess_drift(Walk& walk);
/// Adds a note about how far apart the runs are before the step.
void note_drift(Walk& walk);

}  // namespace msprobe::diagnosis
