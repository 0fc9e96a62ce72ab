// SPDX-License-Identifier: Apache-2.0
// Writes json (one document) and jsonl (one object per line), streamed. The result is always valid JSON,
// whatever bytes the names contain.
#include <cmath>
#include <string>

#include "report/writer_parts.hpp"
#include "support/json_writer.hpp"
#include "support/text.hpp"

namespace msprobe::report {
namespace {

void append_string(std::string& out, std::string_view text) {
  append_json_string(out, text, JsonText::utf8);
}

struct JsonCellAppender {
  std::string& out;

  void operator()(const Text& text) const {
    if (text.texts != nullptr) {
      append_json_list(out, *text.texts);
      return;
    }
    if (text.json.empty()) {
      append_string(out, text.value);
      return;
    }
    // A line break outside strings means a blank in JSON, and strings cannot contain one; an object of jsonl
    // must stay on its line.
    const std::size_t start = out.size();
    out += text.json;
    for (std::size_t i = start; i < out.size(); ++i) {
      if (out[i] == '\n' || out[i] == '\r') out[i] = ' ';
    }
  }
  void operator()(const Spelled& number) const {
    const bool quoted = number.kind == Spelled::NumberForm::percent || !std::isfinite(number.value);
    if (quoted) out += '"';
    append_spelled(out, number);
    if (quoted) out += '"';
  }
  void operator()(double value) const {
    if (std::isnan(value)) {
      out += "\"Nan\"";
    } else if (std::isinf(value)) {
      out += value < 0 ? "\"-inf\"" : "\"inf\"";
    } else {
      append_python_repr(out, value);
    }
  }
  void operator()(std::int64_t value) const { append_json_integer(out, value); }
  void operator()(bool value) const { out += value ? "true" : "false"; }
};

/// The objects, each with `separator` after it.
void write_objects(const Table& table, std::string_view begin, std::string_view separator, const Sink& sink,
                   const WriteOptions& options) {
  std::vector<std::string> keys;
  for (const std::string& name : table.columns()) {
    std::string& key = keys.emplace_back(keys.empty() ? begin : ", ");
    append_string(key, name);
    key += ": ";
  }
  const auto make = [&](RowRange part, std::string& out) {
    std::vector<Cell> cells;
    Scratch scratch;
    out.clear();
    for (std::size_t i = part.first; i < part.last; ++i) {
      table.row(i, cells, scratch);
      if (cells.empty()) out += '{';
      for (std::size_t k = 0; k < cells.size(); ++k) {
        out += keys.at(k);
        std::visit(JsonCellAppender{out}, cells[k]);
      }
      out += '}';
      if (i + 1 < table.rows()) out += separator;
    }
    return out.size();
  };
  each_block<std::string>({0, table.rows()}, options, make, sink);
}

}  // namespace

void write_jsonl(const Table& table, const Sink& sink, const WriteOptions& options) {
  const std::optional<std::vector<std::string>> objects = table.objects();
  write_objects(table, objects ? "{\"kind\": \"row\", " : "{", "\n", sink, options);
  if (table.rows() != 0) sink("\n");
  if (!objects) return;
  for (const std::string& object : *objects) sink(object + "\n");
}

void write_json(const Table& table, const Sink& sink, const WriteOptions& options) {
  std::string head = "{\"columns\": [";
  for (const std::string& name : table.columns()) {
    if (&name != &table.columns().front()) head += ", ";
    append_string(head, name);
  }
  head += "],\n\"rows\": [\n";
  sink(head);
  write_objects(table, "{", ",\n", sink, options);
  if (const std::optional<std::vector<std::string>> objects = table.objects()) {
    sink("\n],\n\"findings\": [");
    for (std::size_t i = 0; i < objects->size(); ++i) sink((i == 0 ? "\n" : ",\n") + (*objects)[i]);
  }
  sink("\n]}\n");
}

}  // namespace msprobe::report
