// SPDX-License-Identifier: Apache-2.0
// All graphs in one data base.
#pragma once

#include <optional>
#include <string>

#include "graph/database/database.hpp"
#include "graph/options.hpp"
#include "graph/output.hpp"

namespace msprobe::graph {

class DatabaseOutput final : public GraphOutput {
 public:
  /// Makes no file before the first graph.
  DatabaseOutput(const GraphOptions& options, bool with_edges);

  void begin(const GraphPlace& place) override;
  std::size_t add(std::string_view side, const NodeSource& source, const GraphObserver& observer) override;
  void end(GraphFrame&& frame) override;
  void take_back() override { database_->go_back(mark_); }
  bool failed() const override { return database_->failed(); }
  std::string finish(const GraphExtent& extent) override;

 private:
  const GraphOptions& options_;
  bool with_edges_;
  std::string path_;
  std::optional<Database> database_;
  GraphPlace place_;
  Database::DatabaseMark mark_;
  Edges edges_;
};

}  // namespace msprobe::graph
