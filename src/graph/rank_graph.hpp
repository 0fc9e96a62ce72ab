// SPDX-License-Identifier: Apache-2.0
// The data of one rank: its tree, and the place of each node's data in the file.
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
  std::string folder;
  std::shared_ptr<const ByteSource> json;
  dump::Header header;
  TextTable entries;
  std::vector<dump::EntryPlace> places;  // of the entries, by number
  model_tree::BuiltTree built;

  /// The value of the column of that name: the folder of tensors, if dump.json names one.
  std::optional<std::string> tensor_folder() const;
  /// Null if dump.json has no entry of that name.
  const dump::EntryPlace* place(std::string_view name) const;
};

/// Reads construct.json, dump.json and, if it exists, stack.json from the folder of a rank. If `items` is
/// given, it receives the items of all entries.
RankGraph read_rank_graph(const std::string& folder, dump::Side* items = nullptr);

}  // namespace msprobe::graph
