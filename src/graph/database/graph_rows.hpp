// SPDX-License-Identifier: Apache-2.0
// Writes the nodes and stacks of one graph into the database.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "graph/data/node_source.hpp"
#include "graph/database/database.hpp"
#include "graph/output.hpp"

namespace msprobe::graph {

/// Identifies a graph: a side of a step and a rank.
struct GraphKey {
  std::string_view data_source = "NPU";  // or `Bench`
  std::int64_t step = 0;
  std::int64_t rank = 0;
};

/// Writes the graph and returns the number of its nodes. Several threads make the texts, one writes the rows.
/// Throws what the source throws.
std::size_t write_graph(const GraphKey& key, const NodeSource& source, Database& database,
                        const GraphObserver& observer = {});

}  // namespace msprobe::graph
