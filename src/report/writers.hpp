// SPDX-License-Identifier: Apache-2.0
// Writes tables to files: csv, xlsx, json, jsonl. A file gets its name only when it is complete.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/table.hpp"
#include "support/output_file.hpp"

namespace msprobe::report {

/// Takes the bytes of a file in order.
using Sink = std::function<void(std::string_view)>;

enum class Format { csv, xlsx, json, jsonl };
std::optional<Format> format_from_name(std::string_view name);
/// The format that a file's name ends in: "a.csv".
std::optional<Format> format_of_file(std::string_view path);
std::string_view extension(Format format);  // "csv", …

struct WriteOptions {
  std::uint64_t csv_rows_per_file = 1'000'000;    // more rows go to `name_part_1.csv`, `name_part_2.csv`, …
  std::uint64_t xlsx_rows_per_sheet = 1'048'500;  // from here on: sheets `part_0`, `part_1`, … of equal size
  Existing existing = Existing::replace;
  std::string sheet = "Sheet1";                // name of the sheet of a single table
  std::function<void(std::uint64_t)> on_rows;  // receives the number of rows written from time to time
  bool csv_byte_order_mark = false;            // before the header, for spreadsheets that guess encodings
  std::string_view csv_line_end = "\n";
  bool quote_prefix = false;  // text that looks like a formula stays unchanged in a workbook, marked as text
  bool wrap_lines = false;    // cells of a workbook show all lines of their text, at the top of the row
};

/// Writes `table` beside `path` and renames it into place (`existing` says whether it may replace a file).
/// Returns the names of the written files (several if the table was split). Throws IoError, and leaves no
/// file then.
std::vector<std::string> write_file(const Table& table, Format format, const std::string& path,
                                    const WriteOptions& options = {});

/// A line of csv in the form of write_file(), for a file that grows row by row.
std::string csv_line(const std::vector<Cell>& cells);

/// A sheet of a workbook. A table that is too long is split into sheets `name_part_0`, `name_part_1`, …, with
/// the first 23 characters of the name.
struct NamedTable {
  std::string name;  // at most 31 characters: letters, digits, blanks and underscores
  const Table* table;
};

/// Writes a workbook of several sheets as write_file() does one.
void write_workbook(const std::vector<NamedTable>& sheets, const std::string& path,
                    const WriteOptions& options = {});

/// Writes `table` to standard output (csv, json, jsonl; xlsx too if it is not a terminal). Returns false if
/// the reader closed the pipe.
bool write_stdout(const Table& table, Format format, const WriteOptions& options = {});

/// Gives `write` a sink that is standard output. Returns false if the reader closed the pipe, which ends
/// `write`.
bool to_stdout(const std::function<void(const Sink&)>& write);

/// Would a spreadsheet take this text for a formula? (docs/formats.md, "Cells": split at `;`; once a part is
/// not a number the whole text is tested for a leading or post-semicolon = + - @ % or a full-width form;
/// blanks, control characters and invisible characters may precede it.)
bool looks_like_formula(std::string_view text);

}  // namespace msprobe::report
