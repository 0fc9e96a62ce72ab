// SPDX-License-Identifier: Apache-2.0
// The outputs of communication depend on other ranks too. They are judged when all ranks are known
// (conclusion.hpp).
#pragma once

#include "diagnosis/walk.hpp"

namespace msprobe::diagnosis {

void note_communication(Walk& walk, EntryPair& entry);
/// Notes the communication of the entries from `first` on, which were not judged: other ranks' calls are
/// matched with these calls, too.
void note_communication_left_out(Walk& walk, std::uint32_t first);

}  // namespace msprobe::diagnosis
