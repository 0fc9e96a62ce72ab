// SPDX-License-Identifier: Apache-2.0
#include "compare/matching/match.hpp"

#include "compare/matching/join.hpp"
#include "compare/matching/mapping_file.hpp"
#include "support/error.hpp"

namespace msprobe::compare {

struct Mapping {
  NameMapping names;
};

namespace {

/// The keys that the entries' names give.
class PlainKeys final : public TargetKeys {
 public:
  explicit PlainKeys(EntryKeys keys) : keys_(std::move(keys)) {}
  Key of(const Item& item, std::string& buffer) const override { return {keys_.of(item, buffer)}; }
  std::string_view of_entry(std::uint32_t api) const override { return keys_.of_entry(api); }

 private:
  EntryKeys keys_;
};

/// Rows that the mapping names go by the name it gives, the others by their own.
class DataKeys final : public TargetKeys {
 public:
  DataKeys(const Side& side, const NameMapping& mapping, bool python_rules)
      : side_(side), mapping_(mapping), python_rules_(python_rules), keys_(side, {}, !python_rules) {}

  Key of(const Item& item, std::string& buffer) const override {
    const std::string* mapped = mapping_.find(side_.name(item));
    if (mapped == nullptr) return {keys_.of(item, buffer)};
    // The Python tool looks for the names as they stand among backward calls that it has numbered anew.
    return {*mapped, python_rules_ ? Key::Among::keys : Key::Among::names};
  }
  std::string_view of_entry(std::uint32_t api) const override { return keys_.of_entry(api); }

 private:
  const Side& side_;
  const NameMapping& mapping_;
  bool python_rules_;
  EntryKeys keys_;
};

bool is_mindspore(const Side& side) {
  return side.header.framework == "mindspore" || side.header.framework == "mindtorch";
}

DtypeCheck dtype_check(const Side& target, const Side& golden, bool python_rules) {
  if (!python_rules) return DtypeCheck::canonical;
  return is_mindspore(target) && golden.header.framework == "pytorch" ? DtypeCheck::classes
                                                                      : DtypeCheck::groups;
}

}  // namespace

void load_mapping(MatchOptions& options) {
  const auto mapping = std::make_shared<Mapping>();
  if (options.method == Method::data) mapping->names = read_name_mapping(*open_file(options.mapping_file));
  options.mapping = mapping;
}

Matching match(const Side& target, const Side& golden, const MatchOptions& options, const Rules& rules) {
  const EntryKeys golden_keys(golden, {}, true);
  const DtypeCheck check = dtype_check(target, golden, options.python_rules);
  if (options.method == Method::data) {
    return join(target, DataKeys(target, options.mapping->names, options.python_rules), golden_keys, rules,
                DtypeCheck::none);
  }
  return join(target, PlainKeys(EntryKeys(target, {}, true)), golden_keys, rules, check);
}

Matching match_exact(const Side& target, const Side& golden, const Rules& rules) {
  return match(target, golden, {}, rules);
}

}  // namespace msprobe::compare
