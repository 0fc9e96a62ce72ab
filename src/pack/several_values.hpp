// SPDX-License-Identifier: Apache-2.0
// Names that got more than one value: all of them are told.
#pragma once

#include <vector>

#include "pack/value.hpp"

namespace msprobe::pack {

/// Adds the names of `from`. A name that has another value already gets all of them:
/// `{"description": "duplicate_value", "values": [...]}`.
void merge(FlatMap& into, const FlatMap& from);

/// What several ways through one file give. What is not the same on all of them is `{"description":
/// "depends_on_condition", "values": [...]}`, with null where a way does not give it.
FlatMap merge_ways(const std::vector<FlatMap>& ways);

}  // namespace msprobe::pack
