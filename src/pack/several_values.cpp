// SPDX-License-Identifier: Apache-2.0
#include "pack/several_values.hpp"

#include <set>
#include <string>
#include <utility>

namespace msprobe::pack {
namespace {

constexpr const char* kDescription = "description";
constexpr const char* kDuplicate = "duplicate_value";
constexpr const char* kConditional = "depends_on_condition";
constexpr const char* kValues = "values";

std::string as_json(const Value& value) {
  std::string out;
  append_json(out, value, 0);
  return out;
}

/// Several values under one name.
bool is_several(const Value& value) {
  if (!value.is(Value::Kind::map) || value.items().size() != 2) return false;
  const Value* const description = value.find(kDescription);
  const Value* const values = value.find(kValues);
  return description != nullptr && values != nullptr &&
         (description->text() == kDuplicate || description->text() == kConditional) &&
         values->is(Value::Kind::list);
}

Value several(const char* description, std::vector<Value> values) {
  Value list = Value::list();
  for (Value& value : values) list.push(std::move(value));
  Value out = Value::map();
  out.push(kDescription, Value::of_text(description));
  out.push(kValues, std::move(list));
  return out;
}

/// Adds the values of a value that stands for several, without duplicates. `seen`: the JSON texts of
/// `values`.
void add_each(std::vector<Value>& values, std::set<std::string>& seen, const Value& value) {
  if (is_several(value)) {
    for (const Value& each : value.items().back().items()) add_each(values, seen, each);
  } else if (seen.insert(as_json(value)).second) {
    values.push_back(value);
  }
}

}  // namespace

void merge(FlatMap& into, const FlatMap& from) {
  for (const auto& [name, value] : from.items()) {
    Value* const old = into.find(name);
    if (old == nullptr) {
      into.set(name, value);
      continue;
    }
    const std::string text = as_json(value);
    if (as_json(*old) == text) continue;
    if (!is_several(*old)) {
      const bool open = is_several(value) && value.find(kDescription)->text() == kConditional;
      *old = several(open ? kConditional : kDuplicate, {*old});
    }
    std::vector<Value>& values = old->items().back().items();
    std::set<std::string> seen;
    for (const Value& each : values) seen.insert(as_json(each));
    add_each(values, seen, value);
  }
}

FlatMap merge_ways(const std::vector<FlatMap>& ways) {
  FlatMap merged;
  if (ways.size() == 1) return ways.front();
  for (const FlatMap& way : ways) {
    for (const auto& [name, first] : way.items()) {
      if (merged.find(name) != nullptr) continue;
      std::vector<Value> values;
      std::set<std::string> seen;
      bool same = true;
      for (const FlatMap& each : ways) {
        const Value* const value = each.find(name);
        same = same && value != nullptr && as_json(*value) == as_json(first);
        add_each(values, seen, value == nullptr ? Value() : *value);
      }
      merged.set(name, same ? first : several(kConditional, std::move(values)));
    }
  }
  return merged;
}

}  // namespace msprobe::pack
