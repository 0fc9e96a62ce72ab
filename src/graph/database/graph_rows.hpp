// SPDX-License-Identifier: Apache-2.0
// Writes the nodes and stacks of one graph into the data base.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

#include "graph/data/node_source.hpp"
#include "graph/database/database.hpp"

namespace msprobe::graph {

/// Which graph it is: a side of a step and a rank.
struct GraphKey {
  std::string_view data_source = "NPU";  // or `Bench`
  std::int64_t step = 0;
  std::int64_t rank = 0;
};

/// What is told while a graph is written, in the order of its rows.
struct GraphObserver {
  std::function<void(std::size_t nodes)> written;  // of how many more
  std::function<void(std::int64_t row, std::string_view node, const NodeData& data)> node;
};

/// The number of its nodes. Texts are made by several threads, rows are written by one. Throws what the
/// source throws.
std::size_t write_graph(const GraphKey& key, const NodeSource& source, Database& database,
                        const GraphObserver& observer = {});

}  // namespace msprobe::graph
