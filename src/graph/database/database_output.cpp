// SPDX-License-Identifier: Apache-2.0
// All graphs in one database (docs/formats.md, "The graph database").
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "database/output_database.hpp"
#include "graph/edges.hpp"
#include "graph/output.hpp"
#include "support/json_writer.hpp"
#include "support/output_file.hpp"
#include "support/parallel.hpp"
#include "support/result_name.hpp"

namespace msprobe::graph {
namespace {

using database::column_text;
using database::OutputDatabase;
using database::Statement;
using database::Values;
using model_tree::ModelTree;
using model_tree::Node;
using model_tree::NodeIndex;

// The indexes grow with the rows, because creating one later would read all rows again. The version number is
// for later readers; the viewer ignores it.
constexpr const char* kTables = R"(PRAGMA user_version = 1;
CREATE TABLE tb_config (
    id TEXT PRIMARY KEY,
    graph_type TEXT NOT NULL,
    task TEXT,
    tool_tip TEXT,
    micro_steps INTEGER,
    overflow_check INTEGER,
    node_colors TEXT NOT NULL,
    rank_list TEXT NOT NULL,
    step_list TEXT NOT NULL
);
CREATE TABLE tb_nodes (
    id TEXT PRIMARY KEY,
    graph_id TEXT NOT NULL,
    node_order INTEGER NOT NULL,
    node_name TEXT NOT NULL,
    node_type TEXT NOT NULL,
    up_node TEXT,
    sub_nodes TEXT,
    precision_index INTEGER,
    overflow_level TEXT,
    micro_step_id INTEGER NOT NULL,
    matched_node_link TEXT,
    stack_id TEXT,
    parallel_merge_info TEXT,
    matched_distributed TEXT,
    modified INTEGER NOT NULL,
    input_data TEXT,
    output_data TEXT,
    data_source TEXT,
    dump_data_dir TEXT,
    step INTEGER NOT NULL,
    rank INTEGER NOT NULL,
    is_distributed INTEGER
);
CREATE TABLE tb_stack (
    id TEXT PRIMARY KEY,
    stack_info TEXT
);
CREATE INDEX index1 ON tb_nodes (step, rank, data_source, up_node, node_order);
CREATE INDEX index2 ON tb_nodes (step, rank, data_source, node_name);
CREATE INDEX index3 ON tb_nodes (step, rank, data_source, node_order);
CREATE INDEX index4 ON tb_nodes (step, rank, node_order);
CREATE INDEX index5 ON tb_nodes (step, rank, micro_step_id, node_order);
CREATE INDEX index6 ON tb_nodes (step, rank, modified, matched_node_link);
CREATE INDEX index7 ON tb_nodes (is_distributed);
)";

constexpr const char* kAddNode =
    "INSERT INTO tb_nodes VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,'{}',0,?,?,?,?,?,?,?)";

// The number of nodes whose texts are made while the previous ones are written.
constexpr std::size_t kNodesAtOnce = 512;
constexpr std::size_t kNodesInTurn = 16;

/// The numbers of rows; a rank that fails is taken back to those before it.
struct RowCounts {
  std::int64_t nodes = 0;
  std::int64_t stacks = 0;
  std::int64_t origins = 0;
};

/// A database that is being written, and its commands.
struct GraphTables {
  explicit GraphTables(const std::string& path) : output(path) {
    output.execute(kTables);
    commands.add_node = output.prepare(kAddNode);
    commands.add_stack = output.prepare("INSERT INTO tb_stack VALUES (?,?)");
    commands.set_communication =
        output.prepare("UPDATE tb_nodes SET matched_distributed = ? WHERE rowid = ?");
    commands.drop_nodes = output.prepare("DELETE FROM tb_nodes WHERE rowid > ?");
    commands.drop_stacks = output.prepare("DELETE FROM tb_stack WHERE rowid > ?");
  }

  /// Records where the error of a node comes from. The table exists only if there is an origin to record; the
  /// viewer does not know it, but other programs can query it.
  void add_origin(std::string_view node, const NodeData& data) {
    if (!commands.add_origin.exists()) {
      output.execute(
          "CREATE TABLE tb_origin (id TEXT PRIMARY KEY, origin TEXT NOT NULL, error REAL, finding TEXT)");
      commands.add_origin = output.prepare("INSERT INTO tb_origin VALUES (?,?,?,?)");
      commands.drop_origins = output.prepare("DELETE FROM tb_origin WHERE rowid > ?");
    }
    Values(output, commands.add_origin)
        .text(node)
        .text(data.origin)
        .number(data.error)
        .text(unless_empty(data.finding))
        .run();
    ++rows.origins;
  }

  void go_back(const RowCounts& counts) {
    Values(output, commands.drop_nodes).number(counts.nodes).run();
    Values(output, commands.drop_stacks).number(counts.stacks).run();
    if (commands.drop_origins.exists()) Values(output, commands.drop_origins).number(counts.origins).run();
    rows = counts;
  }

  void commit() {
    commands = {};        // they must not outlast the connection
    output.commit(true);  // the viewer writes into the file
  }

  static std::optional<std::string_view> unless_empty(std::string_view text) {
    return text.empty() ? std::nullopt : std::optional(text);
  }

  OutputDatabase output;
  struct Commands {
    Statement add_node;
    Statement add_stack;
    Statement set_communication;
    Statement drop_nodes;
    Statement drop_stacks;
    Statement add_origin;  // missing until the table exists
    Statement drop_origins;
  } commands;
  RowCounts rows;  // so far
};

/// A node with the texts that take time to make.
struct Prepared {
  NodeData data;
  std::string id;
  std::string sub_nodes;
  std::string partner;
  std::string input;
  std::string output;
};

/// Writes the nodes and stacks of one graph. Several threads make the texts, one writes the rows.
class GraphWriter {
 public:
  /// `side`: `NPU` or `Bench`.
  GraphWriter(std::string_view side, const GraphPlace& place, const NodeSource& source, GraphTables& tables,
              const GraphObserver& observer)
      : side_(side),
        place_(place),
        graph_id_(fmt::format("{}_{}_{}", side, place.step, place.rank)),
        source_(source),
        tree_(source.tree()),
        tensor_folder_(source.tensor_folder()),
        tables_(tables),
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
      Values(tables_.output, tables_.commands.add_stack)
          .text(stack_id(i))
          .ascii(tree_.stack(stacks_[i]))
          .run();
    tables_.rows.stacks += static_cast<std::int64_t>(stacks_.size());
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
    Values(tables_.output, tables_.commands.add_node)
        .text(prepared.id)
        .text(graph_id_)
        .number(static_cast<std::int64_t>(written_++))
        .text(name)
        .text(std::to_string(static_cast<int>(node.type)))
        .text(node.parent == model_tree::kNoNode ? std::string_view() : tree_.name(node.parent))
        .ascii(prepared.sub_nodes)
        .number(data.precision_index)
        .text(GraphTables::unless_empty(data.overflow_level))
        .number(std::int64_t{node.micro_step})
        .ascii(prepared.partner)
        .text(stack_id(number_of_stack(node.stack)))
        .ascii(data.parallel_merge_info)
        .ascii(prepared.input)
        .ascii(prepared.output)
        .text(side_)
        .text(tensor_folder_ ? std::optional<std::string_view>(*tensor_folder_) : std::nullopt)
        .number(place_.step)
        .number(place_.rank)
        .number(std::int64_t{is_communication(name)})
        .run();
    ++tables_.rows.nodes;
    if (observer_.node) observer_.node(tables_.rows.nodes, column_text(name), data);
    if (!data.origin.empty()) tables_.add_origin(prepared.id, data);
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

  std::string_view side_;
  const GraphPlace& place_;
  std::string graph_id_;
  const NodeSource& source_;
  const ModelTree& tree_;
  std::optional<std::string> tensor_folder_;
  GraphTables& tables_;
  const GraphObserver& observer_;
  std::vector<NodeIndex> order_;
  std::size_t written_ = 0;
  std::vector<std::uint32_t> stacks_;  // in the order of the nodes that first use them
  std::unordered_map<std::uint32_t, std::size_t> stack_numbers_;
};

class DatabaseOutput final : public GraphOutput {
 public:
  DatabaseOutput(const GraphOptions& options, bool with_edges) : options_(options), with_edges_(with_edges) {}

  void begin(const GraphPlace& place) override {
    if (!tables_) {
      path_ = options_.output + (options_.compares() ? "/compare_" : "/build_") +
              claim_time_stamp(options_.output) + ".vis.db";
      tables_.emplace(path_);
    }
    place_ = place;
    before_ = tables_->rows;
  }

  std::size_t add(std::string_view side, const NodeSource& source, const GraphObserver& observer) override {
    return GraphWriter(side, place_, source, *tables_, observer).write();
  }

  void end(GraphFrame&& frame) override {
    for (auto& [side, calls] : frame.calls) edges_.add(side, place_.step, place_.rank, std::move(calls));
  }

  void take_back() override { tables_->go_back(before_); }
  bool failed() const override { return tables_->output.failed(); }

  std::string finish(const GraphExtent& extent) override {
    if (with_edges_) {
      edges_.tell([&](std::int64_t, std::int64_t row, const std::string& json) {
        Values(tables_->output, tables_->commands.set_communication).ascii(json).number(row).run();
      });
    }
    write_config(extent, options_.overflow_check, tables_->output);
    tables_->commit();
    return path_;
  }

 private:
  const GraphOptions& options_;
  bool with_edges_;
  std::string path_;
  std::optional<GraphTables> tables_;  // none before the first graph
  GraphPlace place_;
  RowCounts before_;  // that place
  Edges edges_;
};

}  // namespace

std::unique_ptr<GraphOutput> database_output(const GraphOptions& options, bool with_edges) {
  return std::make_unique<DatabaseOutput>(options, with_edges);
}

}  // namespace msprobe::graph
