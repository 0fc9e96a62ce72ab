// SPDX-License-Identifier: Apache-2.0
// A data base of SQLite's in the making: its file has no name until it is whole.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct sqlite3_stmt;

namespace msprobe::database {

class OutputDatabase;

/// What a column has of a text: one that is not UTF-8, as a surrogate without its partner makes it, is
/// escaped. What refers to such a column has to have the same.
std::string column_text(std::string_view value);

/// A command that is run again and again with other values. It goes before its data base is committed.
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

/// One run of a statement: values are bound in the order of their places.
class Values {
 public:
  Values(const OutputDatabase& database, const Statement& statement)
      : database_(database), statement_(statement.statement_.get()) {}

  /// As column_text() has it.
  Values& text(std::string_view value);
  Values& text(const std::string& value) { return text(std::string_view(value)); }
  Values& text(const std::optional<std::string_view>& value) { return value ? text(*value) : null(); }
  /// The text lasts until the row is in; JSON is ASCII.
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

/// Equal commands in equal order make equal bytes.
class OutputDatabase {
 public:
  /// IoError if nothing can be made at `path`.
  explicit OutputDatabase(const std::string& path);
  ~OutputDatabase();

  void execute(const char* sql) const;
  Statement prepare(const char* sql) const;
  /// Was anything refused? Then nothing can be added any more.
  bool failed() const;
  /// Gives the file its name. With `write_ahead` those who open it keep a log of what they write.
  void commit(bool write_ahead);

  /// Throws what a status of SQLite's stands for, if it is an error.
  void check(int status) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace msprobe::database
