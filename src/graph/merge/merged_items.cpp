// SPDX-License-Identifier: Apache-2.0
#include "graph/merge/merged_items.hpp"

#include <string>
#include <string_view>
#include <vector>

#include "dump/entry.hpp"
#include "graph/merge/node_content.hpp"
#include "support/byte_source.hpp"
#include "support/json_writer.hpp"
#include "support/parallel.hpp"

namespace msprobe::graph {

dump::Side merged_items(const MergedSource& source) {
  const model_tree::ModelTree& tree = source.tree();
  const RankGraph& main = source.graph().main_rank().graph;
  std::vector<std::string> entries(tree.size());
  parallel_blocks(tree.size(), [&](std::size_t node) {
    if (source.origin(static_cast<NodeIndex>(node)) == kNoNode) return;
    const JoinedContent joined = joined_content(source.graph(), source.origin(static_cast<NodeIndex>(node)));
    if (joined.content) dump::append_json(entries[node], joined.content->entry, 0, 0, 0);
  });
  std::string text = "{";
  for (const auto& [name, value] : {std::pair<std::string_view, std::string_view>("task", main.header.task),
                                    {"level", main.header.level},
                                    {"framework", main.header.framework}}) {
    append_json_string(text, name);
    text += ": ";
    append_json_string(text, value);
    text += ", ";
  }
  text += "\"data\": {";
  bool first = true;
  for (NodeIndex node = kRoot; node < tree.size(); ++node) {
    if (entries[node].empty()) continue;
    if (!first) text += ", ";
    first = false;
    append_json_string(text, tree.name(node));
    text += ": ";
    text += entries[node];
    entries[node] = {};
  }
  text += "}}";
  return dump::load_side(*memory_source(text, main.json->name()));
}

}  // namespace msprobe::graph
