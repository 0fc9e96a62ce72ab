// SPDX-License-Identifier: Apache-2.0
// csv as pandas writes it: minimal quoting, `\n` line ends unless others are asked for, a header and no
// index.
#include <cmath>
#include <string>

#include "report/cell_text.hpp"
#include "report/writer_parts.hpp"
#include "support/json_writer.hpp"
#include "support/text.hpp"

namespace msprobe::report {
namespace {

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  for (std::size_t quote; (quote = text.find('"')) != std::string_view::npos; text.remove_prefix(quote + 1)) {
    out += text.substr(0, quote + 1);
    out += '"';
  }
  out += text;
  out += '"';
}

void append_text(std::string& out, std::string_view text) {
  const TextTraits traits = traits_of(text);
  std::string safe;
  if (!is_safe_text(text, traits)) {
    safe = safe_text(text);  // adds nothing that asks for quotes
    text = safe;
  }
  if (traits.has(TextTraits::kControl | TextTraits::kHigh)) {
    safe = without_controls(text);
    text = safe;
  }
  if (traits.has(TextTraits::kCsv)) {
    append_quoted(out, text);
  } else {
    out += text;
  }
}

struct CsvCellAppender {
  std::string& out;

  void operator()(const Text& text) const { append_text(out, text.value); }
  void operator()(const Spelled& number) const { append_spelled(out, number); }
  void operator()(double value) const {
    if (std::isnan(value)) {
      out += "Nan";
    } else {
      // The Python tool writes this blank before infinities, and programs compare the text.
      if (std::isinf(value)) out += ' ';
      append_python_repr(out, value);
    }
  }
  void operator()(std::int64_t value) const { append_json_integer(out, value); }
  void operator()(bool value) const { out += value ? "True" : "False"; }
};

/// Ends a line that began at `start`. A line that holds one empty field needs quotes, or readers skip it.
void end_line(std::string& out, std::size_t start, std::size_t columns, const WriteOptions& options) {
  if (columns == 1 && out.size() == start) out += "\"\"";
  out += options.csv_line_end;
}

void append_cells(std::string& out, const std::vector<Cell>& cells, const WriteOptions& options) {
  const std::size_t start = out.size();
  for (std::size_t k = 0; k < cells.size(); ++k) {
    if (k != 0) out += ',';
    std::visit(CsvCellAppender{out}, cells[k]);
  }
  end_line(out, start, cells.size(), options);
}

}  // namespace

std::string csv_line(const std::vector<Cell>& cells) {
  std::string line;
  append_cells(line, cells, {});
  return line;
}

void write_csv(const Table& table, RowRange rows, const Sink& sink, const WriteOptions& options) {
  std::string header = options.csv_byte_order_mark ? "\xEF\xBB\xBF" : "";
  const std::size_t begin = header.size();
  for (const std::string& name : table.columns()) {
    if (&name != &table.columns().front()) header += ',';
    append_text(header, name);
  }
  end_line(header, begin, table.columns().size(), options);
  sink(header);

  const auto make = [&](RowRange part, std::string& out) {
    std::vector<Cell> cells;
    Scratch scratch;
    out.clear();
    for (std::size_t i = part.first; i < part.last; ++i) {
      table.row(i, cells, scratch);
      append_cells(out, cells, options);
    }
    return out.size();
  };
  each_block<std::string>(rows, options, make, sink);
}

}  // namespace msprobe::report
