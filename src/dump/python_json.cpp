// SPDX-License-Identifier: Apache-2.0
#include "dump/python_json.hpp"

#include "support/json_writer.hpp"

namespace msprobe::dump {

void append_json(std::string& out, const Entry& entry, Entry::Index node, int level, int indent) {
  switch (entry.kind(node)) {
    case NodeKind::null:
      out += "null";
      return;
    case NodeKind::boolean:
      out += entry.boolean(node) ? "true" : "false";
      return;
    case NodeKind::integer:
      out += entry.text(node) == "-0" ? "0" : entry.text(node);
      return;
    case NodeKind::real:
      append_json_real(out, entry.number(node));
      return;
    case NodeKind::string:
      append_json_string(out, entry.text(node));
      return;
    case NodeKind::array:
    case NodeKind::object:
      break;
  }
  const bool object = entry.is(node, NodeKind::object);
  out += object ? '{' : '[';
  bool first = true;
  entry.children(node, [&](Entry::Index child) {
    if (!first) out += indent == 0 ? ", " : ",";
    first = false;
    append_json_line(out, level + 1, indent);
    if (object) {
      append_json_string(out, entry.key(child));
      out += ": ";
    }
    append_json(out, entry, child, level + 1, indent);
  });
  if (!first) append_json_line(out, level, indent);
  out += object ? '}' : ']';
}

void append_json(JsonWriter& json, const Entry& entry, Entry::Index node) {
  json.raw({});
  append_json(json.text(), entry, node, json.level(), json.indent());
}

}  // namespace msprobe::dump
