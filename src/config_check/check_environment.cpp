// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <set>

#include "config_check/checks.hpp"
#include "dump/member_stream.hpp"
#include "pack/packages.hpp"
#include "support/ascii.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::config_check {
namespace {

using pack::PackValue;
using report::Severity;

std::string trimmed_lower(const PackValue& value) {
  std::string text = pack::python_str(value);
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return {};
  text = text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
  const std::string lower = lower_case(text);
  return lower == "true" || lower == "false" ? lower : text;
}

/// The variables of one side.
class EnvironmentSide {
 public:
  EnvironmentSide(const pack::Pack& pack, const Tables& tables) {
    const pack::PackMember& member = pack.members(pack::Section::env).front();
    const dump::Entry entry = read_object(pack, member);
    entry.children(0, [&](dump::Entry::Index child) {
      std::string name(entry.key(child));
      npu_ = npu_ || std::ranges::any_of(tables.npu_marks, [&](const std::string& mark) {
               return name.find(mark) != std::string::npos;
             });
      variables_[std::move(name)] = pack::from_entry(entry, child, pack.name());
    });
  }

  const EnvironmentEntry::Variable* variable(const EnvironmentEntry& entry) const {
    const auto& variable = npu_ ? entry.npu : entry.gpu;
    return variable ? &*variable : nullptr;
  }
  const PackValue& value(const EnvironmentEntry::Variable& variable) const {
    const auto found = variables_.find(variable.name);
    return found == variables_.end() ? variable.default_value : found->second;
  }
  /// As it is set; null where it is not.
  const PackValue* set(std::string_view name) const {
    const auto found = variables_.find(name);
    return found == variables_.end() ? nullptr : &found->second;
  }
  const auto& variables() const { return variables_; }

 private:
  bool npu_ = false;
  std::map<std::string, PackValue, std::less<>> variables_;
};

/// Compares other variables that affect the numbers, including those that only one side sets.
void check_numerics(const EnvironmentSide& bench, const EnvironmentSide& cmp, const Tables& tables,
                    RowTable& rows) {
  std::set<std::string_view> names;
  for (const EnvironmentSide* side : {&bench, &cmp})
    for (const auto& [name, unused] : side->variables()) names.insert(name);
  for (const EnvironmentEntry& entry : tables.environment)  // which have been compared
    for (const auto* variable : {&entry.npu, &entry.gpu})
      if (*variable) names.erase((*variable)->name);
  for (const std::string_view name : names) {
    const NumericVariable* const entry = tables.numeric(name);
    if (entry == nullptr) continue;
    const PackValue* const a = bench.set(name);
    const PackValue* const b = cmp.set(name);
    if (a != nullptr && b != nullptr && trimmed_lower(*a) == trimmed_lower(*b)) continue;
    const bool sure = !entry->name.ends_with('*');
    const auto text = [](const PackValue* value) {
      return value == nullptr ? SheetCell(std::string("None")) : cell_of(*value);
    };
    rows.add({std::string(name), std::string(name), text(a), text(b), sure ? "error" : "warning"},
             sure ? Severity::error : Severity::warning);
  }
}

/// Compares settings of PyTorch. A pack from within a training has them in addition to the variables.
void check_flags(const EnvironmentSide& bench, const EnvironmentSide& cmp, RowTable& rows) {
  for (const auto& [name, value] : bench.variables()) {
    const PackValue* const other = name.starts_with("torch.") ? cmp.set(name) : nullptr;
    if (other == nullptr || trimmed_lower(value) == trimmed_lower(*other)) continue;
    rows.add({name, name, cell_of(value), cell_of(*other), "error"}, Severity::error);
  }
}

/// The versions of packages by normalised name, from pip's list.
std::map<std::string, std::string> read_packages(const pack::Pack& pack) {
  std::map<std::string, std::string> packages;
  const pack::PackMember& member = pack.members(pack::Section::pip).front();
  const std::string text = pack.read(member);
  if (text.find('\0') != std::string::npos)
    throw FormatError(display(pack.name() + ": " + member.name), "not a list of packages: it holds a NUL");
  for (std::string_view line : split(text, "\n")) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::size_t equals = line.find('=');
    const std::string name = pack::normalized_name(line.substr(0, equals));
    if (name.empty()) continue;
    // One equals sign only, or the Python tool knows no version.
    const bool plain =
        equals != std::string_view::npos && line.find('=', equals + 1) == std::string_view::npos;
    packages[name] = plain ? line.substr(equals + 1) : "";
  }
  return packages;
}

std::string_view without_local(std::string_view version) {
  return version.substr(0, version.find('+'));
}

}  // namespace

dump::Entry read_object(const pack::Pack& pack, const pack::PackMember& member) {
  const std::string name = pack.name() + ": " + member.name;
  dump::Entry entry = dump::read_json(pack.read(member), name);
  if (!entry.is(0, dump::NodeKind::object)) throw FormatError(display(name), "not a JSON object");
  return entry;
}

SheetSection check_environment(const Packs& packs, const Tables& tables) {
  auto rows = std::make_unique<RowTable>(
      std::vector<std::string>{"bench_env_name", "cmp_env_name", "bench_value", "cmp_value", "level"});
  const EnvironmentSide bench(packs.bench, tables);
  const EnvironmentSide cmp(packs.cmp, tables);
  for (const EnvironmentEntry& entry : tables.environment) {
    const auto* const left = bench.variable(entry);
    const auto* const right = cmp.variable(entry);
    if (left != nullptr && right != nullptr) {
      const PackValue& a = bench.value(*left);
      const PackValue& b = cmp.value(*right);
      if (trimmed_lower(a) == trimmed_lower(b)) continue;
      rows->add({left->name, right->name, cell_of(a), cell_of(b), "error"}, Severity::error);
    } else if (left != nullptr) {
      rows->add({left->name, "only bench has this env", cell_of(bench.value(*left)), {}, "warning"},
                Severity::warning);
    } else if (right != nullptr) {
      rows->add({"only cmp has this env", right->name, {}, cell_of(cmp.value(*right)), "warning"},
                Severity::warning);
    }
  }
  check_numerics(bench, cmp, tables, *rows);
  check_flags(bench, cmp, *rows);
  const SectionStatus status = rows->status();
  Coverage coverage;
  if (bench.variables().empty() && cmp.variables().empty()) {
    ++coverage.explained;
  } else {
    coverage.compared = tables.environment.size();  // variables that neither sets have their defaults
  }
  for (const auto& [name, value] : bench.variables()) {
    const PackValue* const other = value.is(PackValue::Type::null) ? cmp.set(name) : nullptr;
    if (other != nullptr && other->is(PackValue::Type::null)) coverage.miss("null in both packs", name);
  }
  return {
      .name = "env", .status = status, .table = std::move(rows), .coverage = coverage, .shown = {0, 1, 2, 3}};
}

SheetSection check_packages(const Packs& packs, const Tables& tables, bool all) {
  auto rows = std::make_unique<RowTable>(
      std::vector<std::string>{"package", "bench version", "cmp version", "level"});
  const auto bench = read_packages(packs.bench);
  const auto cmp = read_packages(packs.cmp);
  const auto version = [](const std::map<std::string, std::string>& side, const std::string& name) {
    const auto found = side.find(name);
    return found == side.end() || found->second.empty() ? std::string("None") : found->second;
  };
  const auto compare = [&](const std::string& shown, const std::string& name, Severity severity) {
    const std::string left = version(bench, name);
    const std::string right = version(cmp, name);
    if (left == right) return;
    if (all && without_local(left) == without_local(right)) severity = Severity::warning;
    rows->add({shown, left, right, severity == Severity::error ? "error" : "warning"}, severity);
  };
  std::map<std::string, bool> listed;
  for (const std::string& package : tables.packages) {
    std::string name = pack::normalized_name(package);
    compare(package, name, Severity::error);
    listed[std::move(name)] = true;
  }
  if (all) {
    std::map<std::string, std::string> others = bench;
    others.insert(cmp.begin(), cmp.end());
    for (const auto& [name, unused] : others) {
      if (!listed.contains(name)) compare(name, name, Severity::warning);
    }
  }
  const SectionStatus status = rows->status();
  Coverage coverage;
  const auto has_version = [](const auto& package) { return !package.second.empty(); };
  if (std::ranges::none_of(bench, has_version) && std::ranges::none_of(cmp, has_version)) {
    coverage.miss("neither pack lists the version of a package", "pip");
  } else {
    coverage.compared = tables.packages.size();  // some are installed on neither side
  }
  return {
      .name = "pip", .status = status, .table = std::move(rows), .coverage = coverage, .shown = {0, 1, 2}};
}

}  // namespace msprobe::config_check
