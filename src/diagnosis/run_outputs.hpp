// SPDX-License-Identifier: Apache-2.0
// The outputs of a run of entries that one side alone has, and what unrecorded code may make of them.
#pragma once

#include <cstdint>
#include <vector>

#include "dump/side.hpp"

namespace msprobe::diagnosis {

/// The largest unit roundoff of an entry's outputs.
double coarsest_of(const dump::Side& side, std::uint32_t api);

/// Whether a mask may be an output of one of the entries, or its negation: it has as many elements, and as
/// many of them are true or false.
bool may_give(const dump::Side& side, const std::vector<std::uint32_t>& entries, const dump::Item& mask);

/// Whether indexing may have selected the elements of a tensor from an output of the last entry: they lie
/// between its extremes. True if the run has no entry.
bool may_select(const dump::Side& side, const std::vector<std::uint32_t>& entries, const dump::Item& part);

}  // namespace msprobe::diagnosis
