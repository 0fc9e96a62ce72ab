// SPDX-License-Identifier: Apache-2.0
#include "graph/build.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <filesystem>
#include <optional>
#include <string_view>
#include <system_error>
#include <unordered_map>

#include "dump/entry_items.hpp"
#include "dump/member_stream.hpp"
#include "graph/data/overflow.hpp"
#include "graph/database/database.hpp"
#include "graph/rank_graph.hpp"
#include "support/json_writer.hpp"
#include "support/output_file.hpp"
#include "support/text.hpp"

namespace msprobe::graph {
namespace {

constexpr std::string_view kSource = "NPU";
constexpr std::string_view kGraphId = "NPU_0_0";

/// By the local time; a file that is there already is left alone.
std::string result_path(const std::string& folder) {
  const std::time_t now = std::time(nullptr);
  const std::string stem = fmt::format("{}/build_{:%Y%m%d%H%M%S}", folder, fmt::localtime(now));
  std::string path = stem + ".vis.db";
  std::error_code ignored;
  for (int number = 1; std::filesystem::exists(path, ignored); ++number)
    path = fmt::format("{}_{}.vis.db", stem, number);
  return path;
}

class GraphWriter {
 public:
  GraphWriter(const RankGraph& graph, const GraphOptions& options, Database& database)
      : graph_(graph), tree_(graph.built.tree), options_(options), database_(database) {
    tensor_folder_ = graph.tensor_folder();
  }

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
    const std::string_view name = tree_.name(index);
    read_data(name);
    const std::string id = fmt::format("{}_{}", kGraphId, name);
    const std::string sub_nodes = names_of(node.children);
    const std::string stack = stack_id(number_of_stack(node.stack));
    NodeRow row;
    row.id = id;
    row.graph_id = kGraphId;
    row.order = order_++;
    row.name = name;
    row.type = static_cast<int>(node.type);
    row.up_node = node.parent == kNoNode ? std::string_view() : tree_.name(node.parent);
    row.sub_nodes = sub_nodes;
    row.micro_step = node.micro_step;
    row.matched_node_link = "[]";
    row.stack_id = stack;
    row.input_data = input_;
    row.output_data = output_;
    if (!level_.empty()) row.overflow_level = level_;
    row.data_source = kSource;
    if (tensor_folder_) row.dump_data_dir = *tensor_folder_;
    row.is_distributed = name.starts_with("Distributed");
    database_.add(row);
  }

  void read_data(std::string_view name) {
    input_ = output_ = "{}";
    level_ = {};
    const RankGraph::Place* place = graph_.place(name);
    if (place == nullptr) return;
    dump::read_entry_at(*graph_.json, place->offset, place->size, entry_, name);
    const dump::EntryItems items = dump::items_of(name, entry_, place->size, graph_.json->name());
    const std::vector<ItemText> texts = item_texts(items, entry_, name, options_.data);
    input_ = joined(texts, false);
    output_ = joined(texts, true);
    if (options_.overflow_check) level_ = overflow_level(name, entry_);
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
  static std::string stack_id(std::size_t number) { return fmt::format("{}_{}", kGraphId, number); }

  const RankGraph& graph_;
  const ModelTree& tree_;
  const GraphOptions& options_;
  Database& database_;
  std::optional<std::string> tensor_folder_;
  std::int64_t order_ = 0;
  std::vector<std::uint32_t> stacks_;  // in the order of their first nodes
  std::unordered_map<std::uint32_t, std::size_t> stack_numbers_;

  // Of the node that is written.
  dump::Entry entry_;
  std::string input_;
  std::string output_;
  std::string_view level_;
};

}  // namespace

GraphResult build_graph(const GraphOptions& options) {
  const RankGraph graph = read_rank_graph(options.target, options.tree);
  GraphResult result;
  for (const std::string& name : graph.built.unconnected) {
    result.warnings.push_back(fmt::format("{}: {} is connected to nothing; it stands below the root",
                                          display(graph.folder + "/construct.json"), display(name)));
  }
  if (options.tree.lose_unconnected) result.warnings.clear();
  create_directories(options.output);
  result.file = result_path(options.output);
  Database database(result.file);
  result.nodes = GraphWriter(graph, options, database).write();
  ConfigRow config;
  config.graph_type = "build";
  config.micro_steps = graph.built.tree.micro_steps;
  config.overflow_check = options.overflow_check;
  config.node_colors = "null";
  config.rank_list = "[0]";
  config.step_list = "[0]";
  database.add(config);
  database.commit();
  return result;
}

}  // namespace msprobe::graph
