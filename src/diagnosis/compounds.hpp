// SPDX-License-Identifier: Apache-2.0
// Modules that have recorded operations or modules within, which only hand on what is put out there.
#pragma once

#include "diagnosis/walk.hpp"

namespace msprobe::diagnosis {

/// Fills Walk::compound and Walk::compound_golden.
void mark_compounds(Walk& walk);

}  // namespace msprobe::diagnosis
