// SPDX-License-Identifier: Apache-2.0
#include "pack/hyper_parameters.hpp"

#include <algorithm>
#include <utility>

#include "pack/shell_script.hpp"
#include "pack/yaml.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::pack {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;  // of a script or a YAML file
constexpr std::size_t kMostNames = std::size_t{64} << 20;      // bytes of all names
constexpr const char* kDescription = "description";
constexpr const char* kDuplicate = "duplicate_value";
constexpr const char* kConditional = "depends_on_condition";
constexpr const char* kValues = "values";

/// Is a list of this one value?
bool is_plain_list(const Value& list) {
  return std::none_of(list.items().begin(), list.items().end(), [](const Value& item) {
    return item.is(Value::Kind::null) || item.is(Value::Kind::map);
  });
}

class Flattener {
 public:
  explicit Flattener(const std::string& file) : file_(file) {}

  void add(const std::string& name, const Value& value) {
    const auto below = [&](const std::string& part) { return name.empty() ? part : name + "." + part; };
    if (value.is(Value::Kind::map)) {
      for (std::size_t i = 0; i < value.items().size(); ++i)
        add(spent(below(value.keys()[i])), value.items()[i]);
    } else if (value.is(Value::Kind::list) && !is_plain_list(value)) {
      for (std::size_t i = 0; i < value.items().size(); ++i)
        add(spent(below(std::to_string(i))), value.items()[i]);
    } else if (!value.is(Value::Kind::null) && !name.empty()) {
      out_.set(name, value);
    }
  }
  FlatMap take() { return std::move(out_); }

 private:
  const std::string& spent(const std::string& name) {
    spent_ += name.size();
    if (spent_ > kMostNames)
      throw FormatError(display(file_), "refused: its nested names make too much text");
    return name;
  }

  const std::string& file_;
  FlatMap out_;
  std::size_t spent_ = 0;
};

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

/// Those of a value that is several, each once.
void add_each(std::vector<Value>& values, const Value& value) {
  if (is_several(value)) {
    for (const Value& each : value.items().back().items()) add_each(values, each);
    return;
  }
  const std::string text = as_json(value);
  if (std::none_of(values.begin(), values.end(), [&](const Value& each) { return as_json(each) == text; }))
    values.push_back(value);
}

}  // namespace

FlatMap flatten(const Value& value, const std::string& file) {
  Flattener flattener(file);
  flattener.add("", value);
  return flattener.take();
}

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
    add_each(old->items().back().items(), value);
  }
}

FlatMap merge_ways(const std::vector<FlatMap>& ways) {
  FlatMap merged;
  if (ways.size() == 1) return ways.front();
  for (const FlatMap& way : ways) {
    for (const auto& [name, first] : way.items()) {
      if (merged.find(name) != nullptr) continue;
      std::vector<Value> values;
      bool same = true;
      for (const FlatMap& each : ways) {
        const Value* const value = each.find(name);
        same = same && value != nullptr && as_json(*value) == as_json(first);
        add_each(values, value == nullptr ? Value() : *value);
      }
      merged.set(name, same ? first : several(kConditional, std::move(values)));
    }
  }
  return merged;
}

bool is_parameter_file(std::string_view path) {
  return path.ends_with(".sh") || path.ends_with(".yaml") || path.ends_with(".yml");
}

FlatMap read_parameter_file(const std::string& path) {
  const std::vector<std::byte> bytes = read_all(*open_file(path), kMostBytes);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  if (path.ends_with(".sh")) return read_shell_script(text, path);
  return flatten(read_yaml(text, path), path);
}

}  // namespace msprobe::pack
