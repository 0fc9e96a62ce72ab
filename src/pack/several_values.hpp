// SPDX-License-Identifier: Apache-2.0
// Merges names that got more than one value: the result has all values.
#pragma once

#include <vector>

#include "pack/value.hpp"

namespace msprobe::pack {

/// Adds the names of `from`. A name that has another value already gets all of them:
/// `{"description": "duplicate_value", "values": [...]}`.
void merge(FlatMap& into, const FlatMap& from);

/// Merges the values that several paths through one file give. A name whose value differs between them gets
/// `{"description": "depends_on_condition", "values": [...]}`, with null for a path that does not set it.
FlatMap merge_ways(const std::vector<FlatMap>& ways);

}  // namespace msprobe::pack
