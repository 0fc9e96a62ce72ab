// SPDX-License-Identifier: Apache-2.0
// Writes the nodes and stacks of one graph into the data base.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "graph/data/node_source.hpp"
#include "graph/database/database.hpp"
#include "graph/output.hpp"

namespace msprobe::graph {

/// Which graph it is: a side of a step and a rank.
struct GraphKey {
  std::string_view data_source = "NPU";  // or `Bench`
  std::int64_t step = 0;
  std::int64_t rank = 0;
};

/// The number of its nodes. Texts are made by several threads, rows are written by one. Throws what the
/// source throws.
std::size_t write_graph(const GraphKey& key, const NodeSource& source, Database& database,
                        const GraphObserver& observer = {});

}  // namespace msprobe::graph
