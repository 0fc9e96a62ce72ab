// SPDX-License-Identifier: Apache-2.0
#include "pack/value.hpp"

#include "support/error.hpp"
#include "support/json_writer.hpp"
#include "support/text.hpp"

namespace msprobe::pack {
namespace {

/// As JSON, or as Python prints it.
void append(std::string& out, const PackValue& value, bool json, int indent = 0, int level = 0) {
  const auto text = [&](const std::string& one) {
    if (json) return append_json_string(out, one);
    out += msprobe::python_repr(std::string_view(one));
  };
  switch (value.kind()) {
    case PackValue::Type::null:
      out += json ? "null" : "None";
      return;
    case PackValue::Type::boolean:
      out += value.boolean() ? (json ? "true" : "True") : json ? "false" : "False";
      return;
    case PackValue::Type::integer:
      out += value.text();
      return;
    case PackValue::Type::real:
      return json ? append_json_real(out, value.number()) : append_python_repr(out, value.number());
    case PackValue::Type::text:
      return text(value.text());
    case PackValue::Type::list:
    case PackValue::Type::map:
      break;
  }
  const bool map = value.is(PackValue::Type::map);
  out += map ? '{' : '[';
  for (std::size_t i = 0; i < value.items().size(); ++i) {
    if (i != 0) out += indent == 0 ? ", " : ",";
    append_json_line(out, level + 1, indent);
    if (map) {
      text(value.keys()[i]);
      out += ": ";
    }
    append(out, value.items()[i], json, indent, level + 1);
  }
  if (!value.items().empty()) append_json_line(out, level, indent);
  out += map ? '}' : ']';
}

}  // namespace

PackValue PackValue::of(bool value) {
  PackValue made(Type::boolean);
  made.boolean_ = value;
  return made;
}

PackValue PackValue::of(double value) {
  PackValue made(Type::real);
  made.real_ = value;
  return made;
}

PackValue PackValue::of(std::int64_t value) {
  return of_integer(std::to_string(value));
}

PackValue PackValue::of_integer(std::string digits) {
  PackValue made(Type::integer);
  made.text_ = std::move(digits);
  return made;
}

PackValue PackValue::of_text(std::string text) {
  PackValue made(Type::text);
  made.text_ = std::move(text);
  return made;
}

double PackValue::number() const {
  return kind_ == Type::integer ? parse_number(text_).value_or(0) : real_;
}

const PackValue* PackValue::find(std::string_view key) const {
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    if (keys_[i] == key) return &items_[i];
  }
  return nullptr;
}

void PackValue::push(std::string key, PackValue item) {
  keys_.push_back(std::move(key));
  items_.push_back(std::move(item));
}

void PackValue::settle() {
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

const PackValue* FlatMap::find(const std::string& name) const {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &items_[found->second].second;
}

PackValue* FlatMap::find(const std::string& name) {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &items_[found->second].second;
}

void FlatMap::set(std::string name, PackValue value) {
  const auto [place, inserted] = index_.emplace(name, items_.size());
  if (inserted) {
    items_.emplace_back(std::move(name), std::move(value));
  } else {
    items_[place->second].second = std::move(value);
  }
}

bool equal_items(const PackValue& a, const PackValue& b,
                 bool (*equal)(const PackValue& a, const PackValue& b)) {
  if (a.kind() != b.kind() || a.items().size() != b.items().size()) return false;
  std::unordered_map<std::string_view, const PackValue*> others;
  for (std::size_t i = 0; i < b.keys().size(); ++i) others.emplace(b.keys()[i], &b.items()[i]);
  for (std::size_t i = 0; i < a.items().size(); ++i) {
    const PackValue* other = &b.items()[i];
    if (a.is(PackValue::Type::map)) {
      const auto found = others.find(a.keys()[i]);
      if (found == others.end()) return false;
      other = found->second;
    }
    if (!equal(a.items()[i], *other)) return false;
  }
  return true;
}

std::string python_repr(const PackValue& value) {
  std::string out;
  append(out, value, false);
  return out;
}

std::string python_str(const PackValue& value) {
  return value.is(PackValue::Type::text) ? value.text() : python_repr(value);
}

void append_json(std::string& out, const PackValue& value, int indent, int level) {
  append(out, value, true, indent, level);
}

PackValue from_entry(const dump::Entry& entry, dump::Entry::Index node, const std::string& file, int depth) {
  if (depth > kMaxValueDepth) throw FormatError(display(file), "nested too deeply");
  switch (entry.kind(node)) {
    case dump::NodeKind::null:
      return {};
    case dump::NodeKind::boolean:
      return PackValue::of(entry.boolean(node));
    case dump::NodeKind::integer:
      return PackValue::of_integer(entry.text(node) == "-0" ? "0" : std::string(entry.text(node)));
    case dump::NodeKind::real:
      return PackValue::of(entry.number(node));
    case dump::NodeKind::string:
      return PackValue::of_text(std::string(entry.text(node)));
    case dump::NodeKind::array:
    case dump::NodeKind::object:
      break;
  }
  const bool map = entry.is(node, dump::NodeKind::object);
  PackValue value = map ? PackValue::map() : PackValue::list();
  entry.children(node, [&](dump::Entry::Index child) {
    PackValue item = from_entry(entry, child, file, depth + 1);
    if (map) {
      value.push(std::string(entry.key(child)), std::move(item));
    } else {
      value.push(std::move(item));
    }
  });
  return value;
}

}  // namespace msprobe::pack
