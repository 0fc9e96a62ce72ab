// SPDX-License-Identifier: Apache-2.0
// Notes about the limits of what the dumps of a rank can show.
#pragma once

#include "diagnosis/walk.hpp"

namespace msprobe::diagnosis {

/// Adds the notes that apply to the whole rank.
void take_notes(Walk& walk);

}  // namespace msprobe::diagnosis
