// SPDX-License-Identifier: Apache-2.0
#include "pack/value.hpp"

#include "support/error.hpp"
#include "support/json_writer.hpp"
#include "support/text.hpp"

namespace msprobe::pack {
namespace {

enum class Style : std::uint8_t { python, json };

void append(std::string& out, const Value& value, Style style, int indent = 0, int level = 0) {
  const bool json = style == Style::json;
  const auto text = [&](const std::string& one) {
    if (json) return append_json_string(out, one);
    out += msprobe::python_repr(std::string_view(one));
  };
  switch (value.kind()) {
    case Value::Kind::null:
      out += json ? "null" : "None";
      return;
    case Value::Kind::boolean:
      out += value.boolean() ? (json ? "true" : "True") : json ? "false" : "False";
      return;
    case Value::Kind::integer:
      out += value.text();
      return;
    case Value::Kind::real:
      return json ? append_json_real(out, value.number()) : append_python_repr(out, value.number());
    case Value::Kind::text:
      return text(value.text());
    case Value::Kind::list:
    case Value::Kind::map:
      break;
  }
  const bool map = value.is(Value::Kind::map);
  out += map ? '{' : '[';
  for (std::size_t i = 0; i < value.items().size(); ++i) {
    if (i != 0) out += indent == 0 ? ", " : ",";
    append_json_line(out, level + 1, indent);
    if (map) {
      text(value.keys()[i]);
      out += ": ";
    }
    append(out, value.items()[i], style, indent, level + 1);
  }
  if (!value.items().empty()) append_json_line(out, level, indent);
  out += map ? '}' : ']';
}

Value convert(const dump::Entry& entry, dump::Entry::Index node, const std::string& file, int depth) {
  if (depth > kMaxValueDepth) throw FormatError(display(file), "nested too deeply");
  switch (entry.kind(node)) {
    case dump::NodeKind::null:
      return {};
    case dump::NodeKind::boolean:
      return Value::of(entry.boolean(node));
    case dump::NodeKind::integer:
      return Value::of_integer(entry.text(node) == "-0" ? "0" : std::string(entry.text(node)));
    case dump::NodeKind::real:
      return Value::of(entry.number(node));
    case dump::NodeKind::string:
      return Value::of_text(std::string(entry.text(node)));
    case dump::NodeKind::array:
    case dump::NodeKind::object:
      break;
  }
  const bool map = entry.is(node, dump::NodeKind::object);
  Value value = map ? Value::map() : Value::list();
  entry.children(node, [&](dump::Entry::Index child) {
    Value item = convert(entry, child, file, depth + 1);
    if (map) {
      value.push(std::string(entry.key(child)), std::move(item));
    } else {
      value.push(std::move(item));
    }
  });
  return value;
}

}  // namespace

Value Value::of(bool value) {
  Value made;
  made.kind_ = Kind::boolean;
  made.boolean_ = value;
  return made;
}

Value Value::of(double value) {
  Value made;
  made.kind_ = Kind::real;
  made.real_ = value;
  return made;
}

Value Value::of(std::int64_t value) {
  return of_integer(std::to_string(value));
}

Value Value::of_integer(std::string digits) {
  Value made;
  made.kind_ = Kind::integer;
  made.text_ = std::move(digits);
  return made;
}

Value Value::of_text(std::string text) {
  Value made;
  made.kind_ = Kind::text;
  made.text_ = std::move(text);
  return made;
}

Value Value::list() {
  Value made;
  made.kind_ = Kind::list;
  return made;
}

Value Value::map() {
  Value made;
  made.kind_ = Kind::map;
  return made;
}

double Value::number() const {
  return kind_ == Kind::integer ? parse_number(text_).value_or(0) : real_;
}

const Value* Value::find(std::string_view key) const {
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    if (keys_[i] == key) return &items_[i];
  }
  return nullptr;
}

void Value::push(std::string key, Value item) {
  keys_.push_back(std::move(key));
  items_.push_back(std::move(item));
}

void Value::settle() {
  std::unordered_map<std::string_view, std::size_t> place;
  for (std::size_t i = 0; i < keys_.size(); ++i) place.emplace(keys_[i], i);
  if (place.size() == keys_.size()) return;
  std::vector<bool> keep(keys_.size(), true);
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    const std::size_t first = place.at(keys_[i]);
    if (first == i) continue;
    items_[first] = std::move(items_[i]);
    keep[i] = false;
  }
  place.clear();  // its keys look into strings that move now
  std::size_t kept = 0;
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    if (!keep[i]) continue;
    if (kept != i) {
      keys_[kept] = std::move(keys_[i]);
      items_[kept] = std::move(items_[i]);
    }
    ++kept;
  }
  keys_.resize(kept);
  items_.resize(kept);
}

const Value* FlatMap::find(const std::string& name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &items_[found->second].second;
}

Value* FlatMap::find(const std::string& name) {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &items_[found->second].second;
}

void FlatMap::set(std::string name, Value value) {
  const auto [place, inserted] = index_.emplace(name, items_.size());
  if (inserted) {
    items_.emplace_back(std::move(name), std::move(value));
  } else {
    items_[place->second].second = std::move(value);
  }
}

bool equal_items(const Value& a, const Value& b, bool (*equal)(const Value& a, const Value& b)) {
  if (a.kind() != b.kind() || a.items().size() != b.items().size()) return false;
  std::unordered_map<std::string_view, const Value*> others;
  for (std::size_t i = 0; i < b.keys().size(); ++i) others.emplace(b.keys()[i], &b.items()[i]);
  for (std::size_t i = 0; i < a.items().size(); ++i) {
    const Value* other = &b.items()[i];
    if (a.is(Value::Kind::map)) {
      const auto found = others.find(a.keys()[i]);
      if (found == others.end()) return false;
      other = found->second;
    }
    if (!equal(a.items()[i], *other)) return false;
  }
  return true;
}

std::string python_repr(const Value& value) {
  std::string out;
  append(out, value, Style::python);
  return out;
}

std::string python_str(const Value& value) {
  return value.is(Value::Kind::text) ? value.text() : python_repr(value);
}

void append_json(std::string& out, const Value& value, int indent, int level) {
  append(out, value, Style::json, indent, level);
}

Value from_entry(const dump::Entry& entry, dump::Entry::Index node, const std::string& file) {
  return convert(entry, node, file, 0);
}

}  // namespace msprobe::pack
