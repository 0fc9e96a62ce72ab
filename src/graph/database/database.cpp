// SPDX-License-Identifier: Apache-2.0
#include "graph/database/database.hpp"

#include <sqlite3.h>

#include <new>

#include "graph/database/output_vfs.hpp"
#include "support/error.hpp"
#include "support/interrupt.hpp"
#include "support/output_file.hpp"
#include "support/text.hpp"

namespace msprobe::graph {
namespace {

// The viewer writes into the file and asks by these indexes. No journal: an unfinished file has no name.
constexpr const char* kSetUp = R"(
PRAGMA page_size = 4096;
PRAGMA encoding = 'UTF-8';
PRAGMA journal_mode = OFF;
PRAGMA synchronous = OFF;
PRAGMA locking_mode = EXCLUSIVE;
PRAGMA cache_size = -32768;
PRAGMA temp_store = FILE;
BEGIN;
)";

// The indexes grow with the rows: to make one later takes a look at all rows for each.
constexpr const char* kTables = R"(CREATE TABLE tb_config (
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

/// What a reader needs to see to write ahead of the file, as the viewer does.
constexpr std::uint64_t kJournalBytes = 18;
constexpr std::string_view kWriteAhead = "\2\2";

struct Closer {
  void operator()(sqlite3* connection) const { sqlite3_close_v2(connection); }
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

}  // namespace

struct Database::Impl {
  explicit Impl(const std::string& path) : file(path), vfs(file) {
    sqlite3* opened = nullptr;
    const int status =
        sqlite3_open_v2("graph", &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, vfs.name().c_str());
    connection.reset(opened);
    check(status);
    execute(kSetUp);
    execute(kTables);
    add_node = prepare(kAddNode);
    add_stack = prepare("INSERT INTO tb_stack VALUES (?,?)");
    add_config = prepare("INSERT INTO tb_config VALUES ('1',?,?,?,?,?,?,?,?)");
    set_communication = prepare("UPDATE tb_nodes SET matched_distributed = ? WHERE rowid = ?");
    drop_nodes = prepare("DELETE FROM tb_nodes WHERE rowid > ?");
    drop_stacks = prepare("DELETE FROM tb_stack WHERE rowid > ?");
  }

  /// Only where there is something to tell; other files have the viewer's tables alone.
  void make_origins() {
    execute("CREATE TABLE tb_origin (id TEXT PRIMARY KEY, origin TEXT NOT NULL, error REAL, finding TEXT)");
    add_origin = prepare("INSERT INTO tb_origin VALUES (?,?,?,?)");
    drop_origins = prepare("DELETE FROM tb_origin WHERE rowid > ?");
  }

  using Statement = std::unique_ptr<sqlite3_stmt, Closer>;

  void check(int status) const {
    if (status == SQLITE_OK || status == SQLITE_DONE || status == SQLITE_ROW) return;
    failed = true;
    vfs.rethrow();
    if (status == SQLITE_NOMEM) throw std::bad_alloc();
    if (status == SQLITE_CONSTRAINT_PRIMARYKEY || status == SQLITE_CONSTRAINT)
      throw FormatError(display(file.path()), "two of its rows would have the same name");
    if (status == SQLITE_TOOBIG)
      throw FormatError(display(file.path()), "a value of a row is too large for SQLite");
    throw IoError(display(file.path()),
                  connection == nullptr ? "SQLite cannot begin" : sqlite3_errmsg(connection.get()));
  }

  void execute(const char* sql) const {
    check(sqlite3_exec(connection.get(), sql, nullptr, nullptr, nullptr));
  }

  Statement prepare(const char* sql) const {
    sqlite3_stmt* statement = nullptr;
    check(sqlite3_prepare_v2(connection.get(), sql, -1, &statement, nullptr));
    return Statement(statement);
  }

  /// One row: values are bound in the order of their columns.
  class Row {
   public:
    Row(const Impl& impl, const Statement& statement) : impl_(impl), statement_(statement.get()) {}

    /// A name may hold what is not UTF-8, a surrogate without its partner.
    Row& text(std::string_view value) {
      if (is_utf8(value)) return ascii(value);
      const std::string safe = display(value);
      return bind(safe, SQLITE_TRANSIENT);
    }
    /// The text lasts until the row is in; JSON is ASCII.
    Row& ascii(std::string_view value) { return bind(value, SQLITE_STATIC); }
    Row& text(const std::optional<std::string_view>& value) { return value ? text(*value) : null(); }
    Row& number(std::int64_t value) {
      impl_.check(sqlite3_bind_int64(statement_, ++column_, value));
      return *this;
    }
    Row& number(const std::optional<double>& value) {
      if (!value) return null();
      impl_.check(sqlite3_bind_double(statement_, ++column_, *value));
      return *this;
    }
    void run() {
      check_interrupt();
      sqlite3_step(statement_);
      impl_.check(sqlite3_reset(statement_));
    }

   private:
    Row& bind(std::string_view value, sqlite3_destructor_type lasting) {
      impl_.check(sqlite3_bind_text64(statement_, ++column_, value.data() == nullptr ? "" : value.data(),
                                      value.size(), lasting, SQLITE_UTF8));
      return *this;
    }
    Row& null() {
      impl_.check(sqlite3_bind_null(statement_, ++column_));
      return *this;
    }

    const Impl& impl_;
    sqlite3_stmt* statement_;
    int column_ = 0;
  };

  // In this order: the connection goes before what it writes into.
  OutputFile file;
  OutputVfs vfs;
  std::unique_ptr<sqlite3, Closer> connection;
  Statement add_node;
  Statement add_stack;
  Statement add_config;
  Statement set_communication;
  Statement drop_nodes;
  Statement drop_stacks;
  Statement add_origin;  // null as long as there is no such table
  Statement drop_origins;
  Mark last;  // rows so far
  mutable bool failed = false;
};

Database::Database(const std::string& path) : impl_(std::make_unique<Impl>(path)) {}
Database::~Database() = default;

std::int64_t Database::add(const NodeRow& row) {
  Impl::Row(*impl_, impl_->add_node)
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
  Impl::Row(*impl_, impl_->add_stack).text(id).ascii(lines).run();
  ++impl_->last.stack;
}

void Database::add(const ConfigRow& row) {
  Impl::Row(*impl_, impl_->add_config)
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
  if (impl_->add_origin == nullptr) impl_->make_origins();
  Impl::Row(*impl_, impl_->add_origin)
      .text(row.id)
      .text(row.origin)
      .number(row.error)
      .text(row.finding)
      .run();
  ++impl_->last.origin;
}

void Database::set_communication(std::int64_t row, std::string_view json) {
  Impl::Row(*impl_, impl_->set_communication).ascii(json).number(row).run();
}

Database::Mark Database::mark() const {
  return impl_->last;
}

void Database::go_back(const Mark& mark) {
  Impl::Row(*impl_, impl_->drop_nodes).number(mark.node).run();
  Impl::Row(*impl_, impl_->drop_stacks).number(mark.stack).run();
  if (impl_->drop_origins != nullptr) Impl::Row(*impl_, impl_->drop_origins).number(mark.origin).run();
  impl_->last = mark;
}

bool Database::failed() const {
  return impl_->failed;
}

void Database::commit() {
  impl_->execute("COMMIT");
  for (Impl::Statement* statement : {&impl_->add_node, &impl_->add_stack, &impl_->add_config,
                                     &impl_->set_communication, &impl_->drop_nodes, &impl_->drop_stacks,
                                     &impl_->add_origin, &impl_->drop_origins})
    statement->reset();
  impl_->connection.reset();
  impl_->vfs.rethrow();
  impl_->file.write_at(kJournalBytes, kWriteAhead);
  impl_->file.commit();
}

}  // namespace msprobe::graph
