// SPDX-License-Identifier: Apache-2.0
#include "graph/merge/split_items.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dump/entry.hpp"
#include "graph/merge/node_content.hpp"
#include "support/byte_source.hpp"
#include "support/json_writer.hpp"
#include "support/parallel.hpp"

namespace msprobe::graph {
namespace {

/// A dump.json in memory, built entry by entry.
class EntryFile {
 public:
  explicit EntryFile(const RankGraph& main) : name_(main.json->name()) {
    json_.open_object();
    json_.member("task", main.header.task);
    json_.member("level", main.header.level);
    json_.member("framework", main.header.framework);
    json_.open_object("data");
  }

  void add(std::string_view name, std::string_view entry) {
    json_.key(name);
    json_.raw(entry);
  }

  dump::Side load() {
    json_.close();
    json_.close();
    return dump::load_side(*memory_source(json_.take(), name_));
  }

 private:
  std::string name_;
  JsonWriter json_;
};

/// The number of nodes in a block: memory never holds the data of all ranks at once.
constexpr std::size_t kNodesOfBlock = 4096;

/// Calls `make(node, place)` for each node, in parallel, then `take(node, place)` in the order of the nodes.
template <typename Make, typename Take>
void by_blocks(const MergedSource& source, const Make& make, const Take& take) {
  const std::size_t size = source.tree().size();
  for (std::size_t begin = 0; begin < size; begin += kNodesOfBlock) {
    const std::size_t count = std::min(kNodesOfBlock, size - begin);
    parallel_blocks(count, [&](std::size_t i) {
      const NodeIndex origin = source.origin(static_cast<NodeIndex>(begin + i));
      if (origin != kNoNode) make(origin, i);
    });
    for (std::size_t i = 0; i < count; ++i) take(static_cast<NodeIndex>(begin + i), i);
  }
}

/// A node's entry for the file, and the data that its ranks hold.
struct MadeEntry {
  std::string text;
  SplitContent split;
};

void add_parts(pairing::Joins& joins, const SplitContent& split, const MergeGraph& graph, NodeIndex index,
               const std::unordered_map<const MergeRank*, std::uint32_t>& numbers) {
  const MergeNode& node = graph.node(index);
  const dump::Side& main = split.content->items.side;
  bool sum = node.joint && node.joint->reduced != kNoNode;
  for (std::size_t k = 0; k < main.items.size(); ++k) {
    std::vector<const dump::Item*> partners;
    if (!sum || main.items[k].state != dump::State::output) {
      partners = split.partners(k);
    } else {
      sum = false;  // the entry has it as its first output
    }
    joins.add_part(numbers.at(&rank_of(node, main.items[k])), main, main.items[k]);
    for (std::size_t i = 0; i < partners.size(); ++i) {
      const MergedData::Partner& partner = node.joint->partners[i];
      joins.add_part(numbers.at(&rank_of(partner.graph->node(partner.node), *partners[i])),
                     split.others[i]->items.side, *partners[i]);
    }
    joins.end_item();
  }
}

}  // namespace

SplitItems split_items(const MergedSource& source, const std::vector<MergeRank>& ranks) {
  const MergeGraph& graph = source.graph();
  std::vector<pairing::Joins::JoinedRank> names;
  std::unordered_map<const MergeRank*, std::uint32_t> numbers;
  for (const MergeRank& rank : ranks) {
    numbers[&rank] = static_cast<std::uint32_t>(names.size());
    names.push_back({rank.number, rank.graph.folder + "/dump_tensor_data"});
  }
  SplitItems split;
  split.joins = std::make_shared<pairing::Joins>(std::move(names));
  EntryFile file(graph.main_rank().graph);
  std::vector<MadeEntry> entries(kNodesOfBlock);
  by_blocks(
      source,
      [&](NodeIndex node, std::size_t place) {
        MadeEntry& made = entries[place];
        made.split = split_content(graph.node(node), graph.node(node).joint.get());
        if (!made.split.content) return;
        const std::unique_ptr<MergedData>& joint = graph.node(node).joint;
        const bool sum = joint && joint->reduced != kNoNode;
        dump::append_json(
            made.text, sum ? joined_content(graph, node).content->entry : made.split.content->entry, 0, 0, 0);
      },
      [&](NodeIndex node, std::size_t place) {
        MadeEntry& made = entries[place];
        if (!made.text.empty()) {
          file.add(source.tree().name(node), made.text);
          add_parts(*split.joins, made.split, graph, source.origin(node), numbers);
        }
        made = {};
      });
  split.items = file.load();
  return split;
}

}  // namespace msprobe::graph
