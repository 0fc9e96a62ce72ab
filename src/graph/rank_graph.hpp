// SPDX-License-Identifier: Apache-2.0
// What is read of one rank: its tree, and where the data of each node stands.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dump/dump_json.hpp"
#include "dump/side.hpp"
#include "model_tree/build_tree.hpp"
#include "support/byte_source.hpp"
#include "support/text_pool.hpp"

namespace msprobe::graph {

struct RankGraph {
  /// Where the value of an entry stands in dump.json.
  struct Place {
    std::uint64_t offset = 0;
    std::uint64_t size = 0;
  };

  std::string folder;
  std::shared_ptr<const ByteSource> json;
  dump::Header header;
  TextTable entries;
  std::vector<Place> places;  // of the entries, by number
  model_tree::BuiltTree built;

  /// What the column of that name says: the folder of tensors where dump.json names one.
  std::optional<std::string> tensor_folder() const;
  /// Null if dump.json has none of that name.
  const Place* place(std::string_view name) const;
};

/// A line for each node that nothing connects to the root.
std::vector<std::string> unconnected_lines(const RankGraph& graph);

/// Reads construct.json, dump.json and, if it is there, stack.json of the folder of a rank. `items`: given,
/// it becomes the items of all entries.
RankGraph read_rank_graph(const std::string& folder, dump::Side* items = nullptr);

}  // namespace msprobe::graph
