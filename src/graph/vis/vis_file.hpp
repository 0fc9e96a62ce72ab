// SPDX-License-Identifier: Apache-2.0
// The .vis file of releases 8.x: the graph of a rank, or of a rank beside its reference, as JSON
// (docs/formats.md, ".vis files"). It is written node by node.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "graph/config.hpp"
#include "graph/data/node_source.hpp"
#include "graph/output.hpp"
#include "support/json_writer.hpp"
#include "support/output_file.hpp"

namespace msprobe::graph {

/// The data of a file besides its graphs.
struct VisFrame {
  std::optional<ComparedBy> task;  // none: a single run
  std::uint32_t micro_steps = 1;
  bool overflow_check = false;
};

/// Writes a file, or a part of a file that holds several: begin(), one or two sides, end().
class VisWriter {
 public:
  /// `whole_stacks`: write whole call stacks, not the lines that releases 8.x show.
  VisWriter(OutputFile& out, bool compared, bool whole_stacks);

  /// Writes a graph and returns the number of its nodes. The observer's row is the place in `out` for the
  /// node's communication.
  std::size_t add(const NodeSource& source, const GraphObserver& observer);
  void end(const VisFrame& frame);
  /// Has the writer refused anything? Then nothing can be added any more.
  bool failed() const { return failed_; }

 private:
  void put(std::string_view text);
  int level() const { return compared_ ? 1 : 0; }

  OutputFile& out_;
  bool compared_;
  bool whole_stacks_;
  std::size_t sides_ = 0;
  bool failed_ = false;
};

/// A JSON writer in the style of the file, for the communication of a node.
JsonWriter communication_text(bool compared);
/// The communication of a node as a member of its object, for insertion at its place.
std::string communication_member(std::string_view json, bool compared);

}  // namespace msprobe::graph
