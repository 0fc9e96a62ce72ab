// SPDX-License-Identifier: Apache-2.0
// Reads rows of a csv file from elsewhere, one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "support/byte_source.hpp"

namespace msprobe::sheets {

/// Fields are separated by commas, and are in double quotes if they hold commas, quotes (doubled) or line
/// breaks. Blank lines are skipped, and a byte order mark is not part of the first field. Memory is bounded
/// by one row.
class CsvRows {
 public:
  static constexpr std::size_t kMaxRowBytes = std::size_t{1} << 20;
  static constexpr std::size_t kMaxFields = 4096;

  explicit CsvRows(const ByteSource& file);

  /// Returns false at the end of the file. Throws FormatError with file and line for a quote that is not
  /// closed, text after a closing quote, a row beyond the limits, and a NUL byte.
  bool next(std::vector<std::string>& fields);
  /// The line on which the row of the last next() begins, from 1.
  std::uint64_t line() const { return row_line_; }

 private:
  static constexpr int kEnd = -1;
  int get();
  int peek();
  void read_row(std::vector<std::string>& fields);
  void read_quoted(std::string& field);
  void add(std::string& field, int byte);
  /// Adds the bytes in the buffer before the next special byte.
  void add_plain(std::string& field);
  std::string& next_field(std::vector<std::string>& fields);
  [[noreturn]] void fail(const char* reason) const;

  const ByteSource& file_;
  std::uint64_t offset_ = 0;
  std::vector<std::byte> buffer_;
  std::size_t at_ = 0;
  std::uint64_t line_ = 1;
  std::uint64_t row_line_ = 0;
  std::size_t row_bytes_ = 0;
  std::size_t fields_ = 0;  // of the row so far
};

}  // namespace msprobe::sheets
