// SPDX-License-Identifier: Apache-2.0
#include "graph/database/database_output.hpp"

#include <utility>

#include "graph/database/graph_rows.hpp"
#include "support/output_file.hpp"
#include "support/result_name.hpp"

namespace msprobe::graph {

DatabaseOutput::DatabaseOutput(const GraphOptions& options, bool with_edges)
    : options_(options), with_edges_(with_edges) {}

void DatabaseOutput::begin(const GraphPlace& place) {
  if (!database_) {
    path_ = options_.output + (options_.compares() ? "/compare_" : "/build_") +
            claim_time_stamp(options_.output) + ".vis.db";
    database_.emplace(path_);
  }
  place_ = place;
  mark_ = database_->mark();
}

std::size_t DatabaseOutput::add(std::string_view side, const NodeSource& source,
                                const GraphObserver& observer) {
  return write_graph({side, place_.step, place_.rank}, source, *database_, observer);
}

void DatabaseOutput::end(GraphFrame&& frame) {
  for (auto& [side, calls] : frame.calls) edges_.add(side, place_.step, place_.rank, std::move(calls));
}

std::string DatabaseOutput::finish(const GraphExtent& extent) {
  if (with_edges_) {
    edges_.tell([&](std::int64_t, std::int64_t row, const std::string& json) {
      database_->set_communication(row, json);
    });
  }
  write_config(extent, options_.overflow_check, *database_);
  database_->commit();
  return path_;
}

}  // namespace msprobe::graph
