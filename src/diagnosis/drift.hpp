// SPDX-License-Identifier: Apache-2.0
// How far the runs are apart before the first step that was recorded.
#pragma once

#include "diagnosis/walk.hpp"

namespace msprobe::diagnosis {

/// By their parameters: fills Walk::drift.
void assess_drift(Walk& walk);
/// The state that both runs are in before the step, as a note.
void note_drift(Walk& walk);

}  // namespace msprobe::diagnosis
