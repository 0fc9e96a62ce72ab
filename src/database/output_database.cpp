// SPDX-License-Identifier: Apache-2.0
#include "database/output_database.hpp"

#include <sqlite3.h>

#include <new>

#include "database/output_vfs.hpp"
#include "support/error.hpp"
#include "support/interrupt.hpp"
#include "support/output_file.hpp"
#include "support/text.hpp"

namespace msprobe::database {
namespace {

// There is no journal, because an unfinished file has no name.
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

/// The bytes in the header that let readers use a write-ahead log.
constexpr std::uint64_t kJournalBytes = 18;
constexpr std::string_view kWriteAhead = "\2\2";

struct ConnectionCloser {
  void operator()(sqlite3* connection) const { sqlite3_close_v2(connection); }
};

}  // namespace

void Statement::Closer::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

struct OutputDatabase::Impl {
  explicit Impl(const std::string& path) : file(path), vfs(file) {}

  // The order matters: the connection is destroyed before the file that it writes into.
  OutputFile file;
  OutputVfs vfs;
  std::unique_ptr<sqlite3, ConnectionCloser> connection;
  bool failed = false;
};

OutputDatabase::OutputDatabase(const std::string& path) : impl_(std::make_unique<Impl>(path)) {
  sqlite3* opened = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  const int status = sqlite3_open_v2("output", &opened, flags, impl_->vfs.name().c_str());
  impl_->connection.reset(opened);
  check(status);
  execute(kSetUp);
}

OutputDatabase::~OutputDatabase() = default;

void OutputDatabase::check(int status) const {
  if (status == SQLITE_OK || status == SQLITE_DONE || status == SQLITE_ROW) return;
  const std::string& path = impl_->file.path();
  impl_->failed = true;
  impl_->vfs.rethrow();
  if (status == SQLITE_NOMEM) throw std::bad_alloc();
  if (status == SQLITE_CONSTRAINT_PRIMARYKEY || status == SQLITE_CONSTRAINT)
    throw FormatError(display(path), "two of its rows would have the same name");
  if (status == SQLITE_TOOBIG) throw FormatError(display(path), "a value of a row is too large for SQLite");
  throw IoError(display(path), impl_->connection == nullptr ? "SQLite cannot begin"
                                                            : sqlite3_errmsg(impl_->connection.get()));
}

void OutputDatabase::execute(const char* sql) const {
  check(sqlite3_exec(impl_->connection.get(), sql, nullptr, nullptr, nullptr));
}

Statement OutputDatabase::prepare(const char* sql) const {
  sqlite3_stmt* statement = nullptr;
  check(sqlite3_prepare_v2(impl_->connection.get(), sql, -1, &statement, nullptr));
  return Statement(statement);
}

bool OutputDatabase::failed() const {
  return impl_->failed;
}

void OutputDatabase::commit(bool write_ahead) {
  execute("COMMIT");
  impl_->connection.reset();
  impl_->vfs.rethrow();
  if (write_ahead) impl_->file.write_at(kJournalBytes, kWriteAhead);
  impl_->file.commit();
}

std::string column_text(std::string_view value) {
  return is_utf8(value) ? std::string(value) : display(value);
}

Values& Values::text(std::string_view value) {
  return is_utf8(value) ? ascii(value) : bind(column_text(value), false);
}

Values& Values::ascii(std::string_view value) {
  return bind(value, true);
}

Values& Values::number(std::int64_t value) {
  database_.check(sqlite3_bind_int64(statement_, ++column_, value));
  return *this;
}

Values& Values::number(const std::optional<double>& value) {
  if (!value) return null();
  database_.check(sqlite3_bind_double(statement_, ++column_, *value));
  return *this;
}

void Values::run() {
  check_interrupt();
  sqlite3_step(statement_);
  database_.check(sqlite3_reset(statement_));
}

Values& Values::bind(std::string_view value, bool lasts) {
  database_.check(sqlite3_bind_text64(statement_, ++column_, value.data() == nullptr ? "" : value.data(),
                                      value.size(), lasts ? SQLITE_STATIC : SQLITE_TRANSIENT, SQLITE_UTF8));
  return *this;
}

Values& Values::null() {
  database_.check(sqlite3_bind_null(statement_, ++column_));
  return *this;
}

}  // namespace msprobe::database
