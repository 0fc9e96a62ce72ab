// SPDX-License-Identifier: Apache-2.0
#include "graph/database/graph_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "database/output_database.hpp"
#include "graph/edges.hpp"
#include "support/json_writer.hpp"
#include "support/parallel.hpp"

namespace msprobe::graph {
namespace {

using database::column_text;
using model_tree::ModelTree;
using model_tree::Node;
using model_tree::NodeIndex;

// The number of nodes whose texts are made while the previous ones are written.
constexpr std::size_t kNodesAtOnce = 512;
constexpr std::size_t kNodesInTurn = 16;

/// A node with the texts that take time to make.
struct Prepared {
  NodeData data;
  std::string id;
  std::string sub_nodes;
  std::string partner;
  std::string input;
  std::string output;
};

class GraphWriter {
 public:
  GraphWriter(const GraphKey& key, const NodeSource& source, Database& database,
              const GraphObserver& observer)
      : key_(key),
        graph_id_(fmt::format("{}_{}_{}", key.data_source, key.step, key.rank)),
        source_(source),
        tree_(source.tree()),
        tensor_folder_(source.tensor_folder()),
        database_(database),
        observer_(observer),
        order_(tree_.post_order()) {}

  std::size_t write() {
    // The threads that make the texts of a node also free the old texts in their place, in parallel.
    std::vector<Prepared> ready;
    std::vector<Prepared> next;
    for (std::size_t begin = 0; begin < order_.size() || !ready.empty(); begin += kNodesAtOnce) {
      next.resize(std::min(kNodesAtOnce, order_.size() - std::min(begin, order_.size())));
      const std::size_t pieces = (next.size() + kNodesInTurn - 1) / kNodesInTurn;
      parallel_for(pieces + 1, [&](std::size_t turn) {
        if (turn == 0) return write_nodes(ready);
        const std::size_t end = std::min(next.size(), turn * kNodesInTurn);
        for (std::size_t i = (turn - 1) * kNodesInTurn; i < end; ++i) next[i] = prepare(order_[begin + i]);
      });
      std::swap(ready, next);
    }
    for (std::size_t i = 0; i < stacks_.size(); ++i)
      database_.add_stack(stack_id(i), tree_.stack(stacks_[i]));
    return order_.size();
  }

 private:
  Prepared prepare(NodeIndex index) const {
    Prepared node;
    node.data = source_.data(index);
    node.id = fmt::format("{}_{}", graph_id_, tree_.name(index));
    if (const auto& children = tree_.node(index).children; !children.empty()) {
      JsonWriter json;
      json.open_list();
      for (const NodeIndex child : children) json.value(column_text(tree_.name(child)));
      json.close();
      node.sub_nodes = json.take();
    }
    JsonWriter partner;
    partner.open_list();
    for (const std::string_view name : node.data.partner) partner.value(column_text(name));
    partner.close();
    node.partner = partner.take();
    node.input = items_of(node.data, false);
    node.output = items_of(node.data, true);
    node.data.items = {};  // frees memory for the next node of this thread
    return node;
  }

  void write_nodes(const std::vector<Prepared>& nodes) {
    for (const Prepared& node : nodes) write_node(node);
    if (observer_.written && !nodes.empty()) observer_.written(nodes.size());
  }

  void write_node(const Prepared& prepared) {
    const NodeIndex index = order_[written_];
    const Node& node = tree_.node(index);
    const NodeData& data = prepared.data;
    const std::string_view name = tree_.name(index);
    const std::string stack = stack_id(number_of_stack(node.stack));
    NodeRow row;
    row.id = prepared.id;
    row.graph_id = graph_id_;
    row.order = static_cast<std::int64_t>(written_++);
    row.name = name;
    row.type = static_cast<int>(node.type);
    row.up_node = node.parent == model_tree::kNoNode ? std::string_view() : tree_.name(node.parent);
    row.sub_nodes = prepared.sub_nodes;
    row.precision_index = data.precision_index;
    if (!data.overflow_level.empty()) row.overflow_level = data.overflow_level;
    row.micro_step = node.micro_step;
    row.matched_node_link = prepared.partner;
    row.stack_id = stack;
    row.parallel_merge_info = data.parallel_merge_info;
    row.input_data = prepared.input;
    row.output_data = prepared.output;
    row.data_source = key_.data_source;
    if (tensor_folder_) row.dump_data_dir = *tensor_folder_;
    row.step = key_.step;
    row.rank = key_.rank;
    row.is_distributed = is_communication(name);
    const std::int64_t number = database_.add(row);
    if (observer_.node) observer_.node(number, column_text(name), data);
    if (data.origin.empty()) return;
    OriginRow origin{prepared.id, data.origin, data.error, {}};
    if (!data.finding.empty()) origin.finding = data.finding;
    database_.add_origin(origin);
  }

  static std::string items_of(const NodeData& data, bool outputs) {
    JsonWriter json;
    put_items(json, data.items, outputs);
    return json.take();
  }

  std::size_t number_of_stack(std::uint32_t stack) {
    const auto [known, is_new] = stack_numbers_.try_emplace(stack, stacks_.size());
    if (is_new) stacks_.push_back(stack);
    return known->second;
  }
  std::string stack_id(std::size_t number) const { return fmt::format("{}_{}", graph_id_, number); }

  GraphKey key_;
  std::string graph_id_;
  const NodeSource& source_;
  const ModelTree& tree_;
  std::optional<std::string> tensor_folder_;
  Database& database_;
  const GraphObserver& observer_;
  std::vector<NodeIndex> order_;
  std::size_t written_ = 0;
  std::vector<std::uint32_t> stacks_;  // in the order of the nodes that first use them
  std::unordered_map<std::uint32_t, std::size_t> stack_numbers_;
};

}  // namespace

std::size_t write_graph(const GraphKey& key, const NodeSource& source, Database& database,
                        const GraphObserver& observer) {
  return GraphWriter(key, source, database, observer).write();
}

}  // namespace msprobe::graph
