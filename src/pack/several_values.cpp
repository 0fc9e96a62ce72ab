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

std::string as_json(const PackValue& value) {
  std::string out;
  append_json(out, value, 0);
  return out;
}

/// Several values under one name.
bool is_several(const PackValue& value) {
  if (!value.is(PackValue::Type::map) || value.items().size() != 2) return false;
  const PackValue* const description = value.find(kDescription);
  const PackValue* const values = value.find(kValues);
  return description != nullptr && values != nullptr &&
         (description->text() == kDuplicate || description->text() == kConditional) &&
         values->is(PackValue::Type::list);
}

PackValue several(const char* description, std::vector<PackValue> values) {
  PackValue list = PackValue::list();
  for (PackValue& value : values) list.push(std::move(value));
  PackValue out = PackValue::map();
  out.push(kDescription, PackValue::of_text(description));
  out.push(kValues, std::move(list));
  return out;
}

/// Adds the values of a value that stands for several, without duplicates. `seen`: the JSON texts of
/// `values`.
void add_each(std::vector<PackValue>& values, std::set<std::string>& seen, const PackValue& value) {
  if (is_several(value)) {
    for (const PackValue& each : value.items().back().items()) add_each(values, seen, each);
  } else if (seen.insert(as_json(value)).second) {
    values.push_back(value);
  }
}

}  // namespace

void merge(FlatMap& into, const FlatMap& from) {
  for (const auto& [name, value] : from.items()) {
    PackValue* const old = into.find(name);
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
    std::vector<PackValue>& values = old->items().back().items();
    std::set<std::string> seen;
    for (const PackValue& each : values) seen.insert(as_json(each));
    add_each(values, seen, value);
  }
}

FlatMap merge_ways(const std::vector<FlatMap>& ways) {
  FlatMap merged;
  if (ways.size() == 1) return ways.front();
  for (const FlatMap& way : ways) {
    for (const auto& [name, first] : way.items()) {
      if (merged.find(name) != nullptr) continue;
      std::vector<PackValue> values;
      std::set<std::string> seen;
      bool same = true;
      for (const FlatMap& each : ways) {
        const PackValue* const value = each.find(name);
        same = same && value != nullptr && as_json(*value) == as_json(first);
        add_each(values, seen, value == nullptr ? PackValue() : *value);
      }
      merged.set(name, same ? first : several(kConditional, std::move(values)));
    }
  }
  return merged;
}

}  // namespace msprobe::pack
