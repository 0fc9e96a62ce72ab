// SPDX-License-Identifier: Apache-2.0
// A .vis file of releases 8.x for each rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/options.hpp"
#include "graph/output.hpp"
#include "graph/vis/vis_file.hpp"
#include "support/output_file.hpp"

namespace msprobe::graph {

/// The files of a step wait for each other, because communication between ranks is known only after the last
/// rank.
class VisOutput final : public GraphOutput {
 public:
  explicit VisOutput(const GraphOptions& options);

  void begin(const GraphPlace& place) override;
  std::size_t add(std::string_view side, const NodeSource& source, const GraphObserver& observer) override;
  void end(GraphFrame&& frame) override;
  void take_back() override {}
  bool failed() const override { return writer_->failed(); }
  std::string finish(const GraphExtent& extent) override;

 private:
  /// A file that is written but for the communication of its nodes, within another one.
  struct Draft {
    std::string path;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::vector<std::pair<std::uint64_t, std::string>> gaps;  // texts to insert, by place
  };
  std::string path_of(const GraphPlace& place) const;
  void finish_step();
  void write(Draft& draft);

  const GraphOptions& options_;
  std::string time_;
  GraphPlace place_;
  Draft draft_;                        // of that place
  std::optional<OutputFile> scratch_;  // the drafts of a step; it has the name of the first
  std::optional<VisWriter> writer_;
  std::map<std::int64_t, Draft> drafts_;  // by rank
  Edges edges_;
  std::string first_;  // file
  std::size_t files_ = 0;
};

}  // namespace msprobe::graph
