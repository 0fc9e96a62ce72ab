// SPDX-License-Identifier: Apache-2.0
#include "graph/database/database.hpp"

#include "database/output_database.hpp"

namespace msprobe::graph {
namespace {

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

}  // namespace

using database::OutputDatabase;
using database::Statement;
using database::Values;

struct Database::Impl {
  explicit Impl(const std::string& path) : output(path) {
    output.execute(kTables);
    add_node = output.prepare(kAddNode);
    add_stack = output.prepare("INSERT INTO tb_stack VALUES (?,?)");
    add_config = output.prepare("INSERT INTO tb_config VALUES ('1',?,?,?,?,?,?,?,?)");
    set_communication = output.prepare("UPDATE tb_nodes SET matched_distributed = ? WHERE rowid = ?");
    drop_nodes = output.prepare("DELETE FROM tb_nodes WHERE rowid > ?");
    drop_stacks = output.prepare("DELETE FROM tb_stack WHERE rowid > ?");
  }

  /// Creates the table of origins only if there is one to record; other files have only the viewer's tables.
  void make_origins() {
    output.execute(
        "CREATE TABLE tb_origin (id TEXT PRIMARY KEY, origin TEXT NOT NULL, error REAL, finding TEXT)");
    add_origin = output.prepare("INSERT INTO tb_origin VALUES (?,?,?,?)");
    drop_origins = output.prepare("DELETE FROM tb_origin WHERE rowid > ?");
  }

  OutputDatabase output;
  Statement add_node;
  Statement add_stack;
  Statement add_config;
  Statement set_communication;
  Statement drop_nodes;
  Statement drop_stacks;
  Statement add_origin;  // missing until the table exists
  Statement drop_origins;
  DatabaseMark last;  // rows so far
};

Database::Database(const std::string& path) : impl_(std::make_unique<Impl>(path)) {}
Database::~Database() = default;

std::int64_t Database::add(const NodeRow& row) {
  Values(impl_->output, impl_->add_node)
      .text(row.id)
      .text(row.graph_id)
      .number(row.order)
      .text(row.name)
      .text(std::string_view(std::to_string(row.type)))
      .text(row.up_node)
      .ascii(row.sub_nodes)
      .number(row.precision_index)
      .text(row.overflow_level)
      .number(row.micro_step)
      .ascii(row.matched_node_link)
      .text(row.stack_id)
      .ascii(row.parallel_merge_info)
      .ascii(row.input_data)
      .ascii(row.output_data)
      .text(row.data_source)
      .text(row.dump_data_dir)
      .number(row.step)
      .number(row.rank)
      .number(std::int64_t{row.is_distributed})
      .run();
  return ++impl_->last.node;
}

void Database::add_stack(std::string_view id, std::string_view lines) {
  Values(impl_->output, impl_->add_stack).text(id).ascii(lines).run();
  ++impl_->last.stack;
}

void Database::add(const ConfigRow& row) {
  Values(impl_->output, impl_->add_config)
      .text(row.graph_type)
      .text(row.task)
      .text(row.tool_tip)
      .number(row.micro_steps)
      .number(std::int64_t{row.overflow_check})
      .text(row.node_colors)
      .text(row.rank_list)
      .text(row.step_list)
      .run();
}

void Database::add_origin(const OriginRow& row) {
  if (!impl_->add_origin.exists()) impl_->make_origins();
  Values(impl_->output, impl_->add_origin)
      .text(row.id)
      .text(row.origin)
      .number(row.error)
      .text(row.finding)
      .run();
  ++impl_->last.origin;
}

void Database::set_communication(std::int64_t row, std::string_view json) {
  Values(impl_->output, impl_->set_communication).ascii(json).number(row).run();
}

Database::DatabaseMark Database::mark() const {
  return impl_->last;
}

void Database::go_back(const DatabaseMark& mark) {
  Values(impl_->output, impl_->drop_nodes).number(mark.node).run();
  Values(impl_->output, impl_->drop_stacks).number(mark.stack).run();
  if (impl_->drop_origins.exists()) Values(impl_->output, impl_->drop_origins).number(mark.origin).run();
  impl_->last = mark;
}

bool Database::failed() const {
  return impl_->output.failed();
}

void Database::commit() {
  for (Statement* statement :
       {&impl_->add_node, &impl_->add_stack, &impl_->add_config, &impl_->set_communication,
        &impl_->drop_nodes, &impl_->drop_stacks, &impl_->add_origin, &impl_->drop_origins})
    statement->reset();
  impl_->output.commit(true);  // the viewer writes into the file
}

}  // namespace msprobe::graph
