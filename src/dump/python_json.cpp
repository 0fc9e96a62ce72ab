// SPDX-License-Identifier: Apache-2.0
#include "dump/python_json.hpp"

#include <fmt/format.h>

#include <cmath>
#include <iterator>

#include "support/text.hpp"

namespace msprobe::dump {
namespace {

void append_unit(std::string& out, std::uint32_t unit) {
  fmt::format_to(std::back_inserter(out), "\\u{:04x}", unit);
}

bool is_plain(char c) {
  return c >= ' ' && c <= '~' && c != '"' && c != '\\';
}

/// The code of a lone surrogate that an escape left in the text, or 0.
std::uint32_t surrogate_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(text[at + k]); };
  if (text.size() - at < 3 || byte(0) != 0xED || byte(1) < 0xA0 || byte(1) > 0xBF || (byte(2) & 0xC0) != 0x80)
    return 0;
  return 0xD000U | ((byte(1) & 0x3FU) << 6) | (byte(2) & 0x3FU);
}

}  // namespace

void append_json_string(std::string& out, std::string_view text) {
  out += '"';
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (is_plain(c)) {
      const std::size_t begin = i;
      while (i < text.size() && is_plain(text[i])) ++i;
      out += text.substr(begin, i - begin);
      continue;
    }
    constexpr std::string_view kPlain = "\"\\\n\r\t\f\b";
    constexpr std::string_view kLetters = "\"\\nrtfb";
    if (const std::size_t which = kPlain.find(c); which != std::string_view::npos) {
      out += '\\';
      out += kLetters[which];
      ++i;
    } else if (const std::uint32_t surrogate = surrogate_at(text, i); surrogate != 0) {
      append_unit(out, surrogate);
      i += 3;
    } else {
      const Utf8 character = utf8_at(text, i);
      const auto code = static_cast<std::uint32_t>(character.code);
      if (!character.valid) {
        append_unit(out, 0xDC00U + code);
      } else if (code < 0x10000) {
        append_unit(out, code);
      } else {
        append_unit(out, 0xD800U + ((code - 0x10000) >> 10));
        append_unit(out, 0xDC00U + ((code - 0x10000) & 0x3FFU));
      }
      i += character.length;
    }
  }
  out += '"';
}

void append_json_real(std::string& out, double value) {
  if (std::isnan(value)) {
    out += "NaN";
  } else if (std::isinf(value)) {
    out += value < 0 ? "-Infinity" : "Infinity";
  } else {
    append_python_repr(out, value);
  }
}

void append_json_line(std::string& out, int level, int indent) {
  if (indent == 0) return;
  out += '\n';
  out.append(static_cast<std::size_t>(level) * static_cast<std::size_t>(indent), ' ');
}

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

}  // namespace msprobe::dump
