// SPDX-License-Identifier: Apache-2.0
// What comes out of communication is other ranks' as well: judged when they are known (conclusion.hpp).
#pragma once

#include "diagnosis/walk.hpp"

namespace msprobe::diagnosis {

void note_communication(Walk& walk, EntryPair& entry);
/// Other ranks' calls are matched with those of entries that nobody looked at, too: from `first` on.
void note_communication_left_out(Walk& walk, std::uint32_t first);

}  // namespace msprobe::diagnosis
