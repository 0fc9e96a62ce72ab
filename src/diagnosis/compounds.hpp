// SPDX-License-Identifier: Apache-2.0
// Compound modules: they contain recorded operations or modules, and only hand on what these compute.
#pragma once

#include "diagnosis/walk.hpp"

namespace msprobe::diagnosis {

/// Fills Walk::compound and Walk::compound_golden.
void mark_compounds(Walk& walk);

}  // namespace msprobe::diagnosis
