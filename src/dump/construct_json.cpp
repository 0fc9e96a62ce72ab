// SPDX-License-Identifier: Apache-2.0
#include "dump/construct_json.hpp"

#include <algorithm>
#include <filesystem>
#include <unordered_map>
#include <unordered_set>

#include "dump/member_stream.hpp"
#include "support/error.hpp"

namespace msprobe::dump {

std::string_view ConstructTable::parent(std::string_view entry) const {
  const std::uint32_t number = names_.find(entry);
  return number < parents_.size() ? names_.at(parents_[number]) : std::string_view();
}

std::vector<std::string_view> ConstructTable::around(std::string_view entry) const {
  constexpr std::size_t kMostLevels = 64;
  std::vector<std::string_view> modules;
  for (entry = parent(entry); !entry.empty() && modules.size() < kMostLevels; entry = parent(entry))
    modules.push_back(entry);
  return modules;
}

void ConstructTable::add(std::string_view entry, std::string_view parent) {
  const std::uint32_t number = names_.intern(entry);
  const std::uint32_t above = names_.intern(parent);
  if (names_.size() > parents_.size()) parents_.resize(names_.size(), 0);
  if (parents_[number] == 0 && above != 0) ++known_;
  if (parents_[number] != 0 && above == 0) --known_;
  parents_[number] = above;
}

std::uint32_t ConstructTable::micro_step(std::string_view entry) const {
  const std::uint32_t number = names_.find(entry);
  return number < micro_steps_.size() ? micro_steps_[number] : 0;
}

void ConstructTable::add_micro_step(std::string_view entry, std::uint32_t step) {
  const std::uint32_t number = names_.intern(entry);
  if (number >= micro_steps_.size()) micro_steps_.resize(number + 1, 0);
  micro_steps_[number] = step;
}

std::vector<std::string> ConstructTable::chain(std::string_view entry) const {
  std::vector<std::string> names{std::string(entry)};
  std::unordered_set<std::string_view> seen{entry};
  for (std::string_view name = parent(entry); !name.empty() && seen.insert(name).second;
       name = parent(name)) {
    names.emplace_back(name);
  }
  std::reverse(names.begin(), names.end());
  return names;
}

void read_construct_members(const ByteSource& file, const ConstructVisitor& visit) {
  MemberStream stream(file);
  stream.enter();
  std::string name;
  Entry value;
  while (stream.next(name)) {
    stream.entry(value, name);
    visit(name, value);
  }
}

std::string_view construct_parent(const Entry& value) {
  const Entry::Index parent = value.is(0, NodeKind::array) && !value.empty(0) ? 1 : 0;
  return value.is(parent, NodeKind::string) ? value.text(parent) : std::string_view();
}

std::uint32_t construct_micro_step(const Entry& value) {
  constexpr double kMost = 1e9;
  if (!value.is(0, NodeKind::array)) return 0;
  std::size_t place = 0;
  double number = 0;
  value.children(0, [&](Entry::Index child) {
    if (place++ == 1 && value.is(child, NodeKind::integer)) number = value.number(child);
  });
  return number > 0 && number <= kMost ? static_cast<std::uint32_t>(number) : 0;
}

namespace {

/// Some recorders give calls of a closure that optimizer.step() runs the parent "optimizer", too: the forward
/// of a training step, as in Lightning. Those calls have a backward, and come before the optimizer's own.
class Closures {
 public:
  void look_at(std::string_view name, std::string_view parent) {
    constexpr std::string_view kForward = ".forward";
    constexpr std::string_view kBackward = ".backward";
    if (parent == "optimizer" && name.ends_with(kForward)) {
      places_[std::string(name.substr(0, name.size() - kForward.size()))] = calls_.size();
      calls_.emplace_back(name);
    } else if (name.ends_with(kBackward) && !calls_.empty()) {
      const auto forward = places_.find(std::string(name.substr(0, name.size() - kBackward.size())));
      if (forward != places_.end()) end_ = std::max(end_, forward->second + 1);
    }
  }
  void leave_out_of(ConstructTable& table) const {
    for (std::size_t i = 0; i < end_; ++i) table.add(calls_[i], {});
  }

 private:
  std::vector<std::string> calls_;  // whose parent is "optimizer"
  std::unordered_map<std::string, std::size_t> places_;
  std::size_t end_ = 0;  // the calls before it are a closure's
};

}  // namespace

ConstructTable read_construct_json(const ByteSource& file) {
  ConstructTable table;
  Closures closures;
  read_construct_members(file, [&](std::string_view name, const Entry& value) {
    const std::string_view parent = construct_parent(value);
    if (!parent.empty()) table.add(name, parent);
    closures.look_at(name, parent);
    if (const std::uint32_t step = construct_micro_step(value); step > 0) table.add_micro_step(name, step);
  });
  closures.leave_out_of(table);
  return table;
}

ConstructBeside::ConstructBeside(const std::string& dump_json)
    : path_(std::filesystem::path(dump_json).replace_filename("construct.json")) {}

ConstructBeside::ConstructBeside(ConstructTable&& table) : table_(std::move(table)) {
  std::call_once(once_, [] {});
}

const ConstructTable& ConstructBeside::table() const {
  std::call_once(once_, [this] { read(); });
  return table_;
}

const std::string& ConstructBeside::problem() const {
  table();
  return problem_;
}

void ConstructBeside::read() const {
  if (std::error_code ignored; !std::filesystem::exists(path_, ignored)) return;
  try {
    table_ = read_construct_json(*open_file(path_));
  } catch (const Error& error) {
    problem_ = error.what();
  }
}

}  // namespace msprobe::dump
