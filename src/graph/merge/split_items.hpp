// SPDX-License-Identifier: Apache-2.0
// The data of all nodes of a merged model, in the form of one rank's data.
#pragma once

#include <memory>
#include <vector>

#include "dump/side.hpp"
#include "graph/merge/merged_source.hpp"
#include "pairing/joins.hpp"

namespace msprobe::graph {

/// The data of the first rank, with the data that the other ranks hold.
struct SplitItems {
  dump::Side items;
  std::shared_ptr<pairing::Joins> joins;
};
/// Throws IoError, FormatError.
SplitItems split_items(const MergedSource& source, const std::vector<MergeRank>& ranks);

}  // namespace msprobe::graph
