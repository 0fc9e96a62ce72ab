// SPDX-License-Identifier: Apache-2.0
// Writes an SQLite database whose file has no name until it is whole.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct sqlite3_stmt;

namespace msprobe::database {

class OutputDatabase;

/// The form of a text in a column: a text that is not UTF-8, such as one with a surrogate without its
/// partner, is escaped. Columns that refer to it must have the same form.
std::string column_text(std::string_view value);

/// A command that runs again and again with other values. It must be destroyed before its database is
/// committed.
class Statement {
 public:
  Statement() = default;
  bool exists() const { return statement_ != nullptr; }
  void reset() { statement_.reset(); }

 private:
  friend class OutputDatabase;
  friend class Values;
  struct Closer {
    void operator()(sqlite3_stmt* statement) const;
  };
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}
  std::unique_ptr<sqlite3_stmt, Closer> statement_;
};

/// One run of a statement; values are bound in the order of their places.
class Values {
 public:
  Values(const OutputDatabase& database, const Statement& statement)
      : database_(database), statement_(statement.statement_.get()) {}

  /// Binds a text in the form of column_text().
  Values& text(std::string_view value);
  Values& text(const std::string& value) { return text(std::string_view(value)); }
  Values& text(const std::optional<std::string_view>& value) { return value ? text(*value) : null(); }
  /// The text must live until the row is inserted; JSON is ASCII.
  Values& ascii(std::string_view value);
  Values& number(std::int64_t value);
  Values& number(const std::optional<double>& value);
  void run();

 private:
  Values& bind(std::string_view value, bool lasts);
  Values& null();

  const OutputDatabase& database_;
  sqlite3_stmt* statement_;
  int column_ = 0;
};

/// Equal commands in equal order produce equal bytes.
class OutputDatabase {
 public:
  /// Throws IoError if no file can be created at `path`.
  explicit OutputDatabase(const std::string& path);
  ~OutputDatabase();

  void execute(const char* sql) const;
  Statement prepare(const char* sql) const;
  /// True if SQLite reported an error. Then nothing can be added any more.
  bool failed() const;
  /// Gives the file its name. With `write_ahead`, programs that open it use a write-ahead log.
  void commit(bool write_ahead);

  /// Throws an exception for a status of SQLite that is an error.
  void check(int status) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace msprobe::database
