// SPDX-License-Identifier: Apache-2.0
#include "graph/database/graph_rows.hpp"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "support/json_writer.hpp"

namespace msprobe::graph {
namespace {

using model_tree::ModelTree;
using model_tree::Node;
using model_tree::NodeIndex;

class GraphWriter {
 public:
  GraphWriter(const GraphKey& key, const NodeSource& source, Database& database)
      : key_(key),
        graph_id_(fmt::format("{}_{}_{}", key.data_source, key.step, key.rank)),
        source_(source),
        tree_(source.tree()),
        tensor_folder_(source.tensor_folder()),
        database_(database) {}

  std::size_t write() {
    const std::vector<NodeIndex> order = tree_.post_order();
    for (const NodeIndex index : order) write_node(index);
    for (std::size_t i = 0; i < stacks_.size(); ++i)
      database_.add_stack(stack_id(i), tree_.stack(stacks_[i]));
    return order.size();
  }

 private:
  void write_node(NodeIndex index) {
    const Node& node = tree_.node(index);
    const NodeData data = source_.data(index);
    const std::string_view name = tree_.name(index);
    const std::string id = fmt::format("{}_{}", graph_id_, name);
    const std::string sub_nodes = names_of(node.children);
    const std::string stack = stack_id(number_of_stack(node.stack));
    const std::string input = joined(data.items, false);
    const std::string output = joined(data.items, true);
    NodeRow row;
    row.id = id;
    row.graph_id = graph_id_;
    row.order = order_++;
    row.name = name;
    row.type = static_cast<int>(node.type);
    row.up_node = node.parent == model_tree::kNoNode ? std::string_view() : tree_.name(node.parent);
    row.sub_nodes = sub_nodes;
    row.precision_index = data.precision_index;
    if (!data.overflow_level.empty()) row.overflow_level = data.overflow_level;
    row.micro_step = node.micro_step;
    row.matched_node_link = data.matched_node_link;
    row.stack_id = stack;
    row.parallel_merge_info = data.parallel_merge_info;
    row.input_data = input;
    row.output_data = output;
    row.data_source = key_.data_source;
    if (tensor_folder_) row.dump_data_dir = *tensor_folder_;
    row.step = key_.step;
    row.rank = key_.rank;
    row.is_distributed = name.starts_with("Distributed");
    database_.add(row);
  }

  std::string names_of(const std::vector<NodeIndex>& nodes) const {
    if (nodes.empty()) return {};
    JsonWriter json;
    json.open_list();
    for (const NodeIndex node : nodes) json.value(tree_.name(node));
    json.close();
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
  std::int64_t order_ = 0;
  std::vector<std::uint32_t> stacks_;  // in the order of their first nodes
  std::unordered_map<std::uint32_t, std::size_t> stack_numbers_;
};

}  // namespace

std::size_t write_graph(const GraphKey& key, const NodeSource& source, Database& database) {
  return GraphWriter(key, source, database).write();
}

}  // namespace msprobe::graph
