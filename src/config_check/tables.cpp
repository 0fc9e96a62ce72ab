// SPDX-License-Identifier: Apache-2.0
#include "config_check/tables.hpp"

#include <algorithm>
#include <string_view>

#include "config_check/default_tables.hpp"
#include "pack/yaml.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::config_check {
namespace {

using pack::PackValue;

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 20;

class TableLoader {
 public:
  TableLoader(Tables& tables, const std::string& file) : tables_(tables), file_(file) {}

  void load(std::string_view text) {
    const PackValue root = pack::read_yaml(text, file_);
    if (root.is(PackValue::Type::null)) return;
    each("the tables", root, &TableLoader::table);
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const { throw FormatError(display(file_), reason); }

  using Reader = void (TableLoader::*)(const std::string& name, const PackValue& value);
  void require_map(const PackValue& value, const std::string& what) const {
    if (!value.is(PackValue::Type::map)) fail(display(what) + " must be a mapping of names");
  }
  void each(const std::string& what, const PackValue& map, Reader read) {
    require_map(map, what);
    for (std::size_t i = 0; i < map.items().size(); ++i) (this->*read)(map.keys()[i], map.items()[i]);
  }
  std::string as_text(const PackValue& value, const std::string& what) const {
    if (!value.is(PackValue::Type::text) || value.text().empty()) fail(display(what) + " must be a name");
    return value.text();
  }
  std::vector<std::string> as_names(const PackValue& value, const std::string& what) const {
    if (!value.is(PackValue::Type::list)) fail(display(what) + " must be a list of names");
    std::vector<std::string> names;
    for (const PackValue& item : value.items()) names.push_back(as_text(item, what));
    return names;
  }
  static void add(std::vector<std::string>& to, const std::vector<std::string>& names) {
    for (const std::string& name : names) {
      if (std::find(to.begin(), to.end(), name) == to.end()) to.push_back(name);
    }
  }

  void table(const std::string& title, const PackValue& value) {
    const bool clear = title.ends_with('!');
    const std::string key = title.substr(0, title.size() - (clear ? 1 : 0));
    if (key == "npu_marks" || key == "packages" || key == "secrets" || key == "no_numerics") {
      std::vector<std::string>& names = key == "npu_marks"  ? tables_.npu_marks
                                        : key == "packages" ? tables_.packages
                                        : key == "secrets"  ? tables_.secrets
                                                            : tables_.no_numerics;
      if (clear) names.clear();
      add(names, as_names(value, key));
    } else if (key == "environment") {
      if (clear) tables_.environment.clear();
      each(key, value, &TableLoader::environment);
    } else if (key == "numerics") {
      if (clear) tables_.numerics.clear();
      each(key, value, &TableLoader::numeric);
    } else if (key == "aliases") {
      if (clear) tables_.aliases.clear();
      each(key, value, &TableLoader::aliases);
    } else if (key == "verl") {
      if (clear) tables_.verl = {};
      each(key, value, &TableLoader::verl);
    } else {
      fail("unknown table '" + display(key) + "'");
    }
  }

  void environment(const std::string& name, const PackValue& value) {
    require_map(value, name);
    EnvironmentEntry entry;
    entry.name = name;
    for (std::size_t i = 0; i < value.keys().size(); ++i) {
      const std::string& key = value.keys()[i];
      const bool is_default = key.ends_with("_default");
      const std::string kind = key.substr(0, 3);
      if ((kind != "npu" && kind != "gpu") || key.size() != (is_default ? 11 : 3))
        fail(display(name) + " has an unknown key '" + display(key) + "'");
      auto& variable = kind == "npu" ? entry.npu : entry.gpu;
      if (!variable) variable.emplace();
      if (is_default) {
        if (value.items()[i].is_container()) fail(display(name) + ": a default must be a single value");
        variable->default_value = value.items()[i];
      } else {
        variable->name = as_text(value.items()[i], name);
      }
    }
    for (const auto* variable : {&entry.npu, &entry.gpu}) {
      if (*variable && (*variable)->name.empty()) fail(display(name) + " has a default without a variable");
    }
    if (!entry.npu && !entry.gpu) fail(display(name) + " names no variable");
    const auto old = std::ranges::find_if(tables_.environment,
                                          [&](const EnvironmentEntry& each) { return each.name == name; });
    if (old == tables_.environment.end()) {
      tables_.environment.push_back(std::move(entry));
    } else {
      *old = std::move(entry);
    }
  }

  void verl(const std::string& name, const PackValue& value) { tables_.verl.set(name, value); }

  void numeric(const std::string& name, const PackValue& value) {
    if (name.empty() || name == "*") fail("numerics: " + display(name) + " names no variable");
    if (!value.is(PackValue::Type::text)) fail(display(name) + " must have a reason, a text");
    const auto old = std::ranges::find_if(tables_.numerics,
                                          [&](const NumericVariable& each) { return each.name == name; });
    if (old == tables_.numerics.end()) {
      tables_.numerics.push_back({name, value.text()});
    } else {
      old->reason = value.text();
    }
  }

  void aliases(const std::string& name, const PackValue& value) {
    std::vector<std::string> names = {name};
    add(names, as_names(value, name));
    const auto old = std::ranges::find_if(tables_.aliases,
                                          [&](const AliasGroup& each) { return each.names.front() == name; });
    if (old == tables_.aliases.end()) {
      tables_.aliases.push_back({std::move(names)});
    } else {
      add(old->names, names);
    }
  }

  Tables& tables_;
  const std::string& file_;
};

}  // namespace

const NumericVariable* Tables::numeric(std::string_view variable) const {
  const NumericVariable* family = nullptr;
  for (const NumericVariable& each : numerics) {
    if (each.name == variable) return &each;
    if (each.name.ends_with('*') && variable.starts_with(each.name.substr(0, each.name.size() - 1)))
      family = &each;
  }
  return family == nullptr || std::ranges::find(no_numerics, variable) != no_numerics.end() ? nullptr
                                                                                            : family;
}

Tables default_tables() {
  Tables tables;
  TableLoader(tables, "built-in tables").load(kDefaultTables);
  return tables;
}

Tables load_tables(const std::string& path) {
  Tables tables = default_tables();
  TableLoader(tables, path).load(read_all(*open_file(path), kMostBytes));
  return tables;
}

}  // namespace msprobe::config_check
