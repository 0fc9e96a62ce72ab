// SPDX-License-Identifier: Apache-2.0
// The data of all nodes of a merged model, flattened as those of a rank.
#pragma once

#include "dump/side.hpp"
#include "graph/merge/merged_source.hpp"

namespace msprobe::graph {

/// Throws IoError, FormatError.
dump::Side merged_items(const MergedSource& source);

}  // namespace msprobe::graph
