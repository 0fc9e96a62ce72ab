// SPDX-License-Identifier: Apache-2.0
// What the dumps of a rank cannot show.
#pragma once

#include "diagnosis/walk.hpp"

namespace msprobe::diagnosis {

/// What holds of all that was judged.
void take_notes(Walk& walk);

}  // namespace msprobe::diagnosis
