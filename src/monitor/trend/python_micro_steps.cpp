// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "dump/construct_json.hpp"
#include "dump/names.hpp"
#include "monitor/trend/micro_steps.hpp"
#include "support/ascii.hpp"

namespace msprobe::monitor {
namespace {

constexpr std::string_view kBackwardPart = ".backward";
constexpr std::string_view kGradientPart = ".parameters_grad";

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (std::size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
}

/// Entries are looked for by the names of their forward calls, parents too.
std::string as_forward(std::string_view entry) {
  constexpr std::string_view kForward = ".forward";
  std::string name(entry);
  replace_all(name, kBackwardPart, kForward);
  replace_all(name, kGradientPart, kForward);
  return name;
}

/// A name without its call number, and that.
std::pair<std::string, std::int64_t> split_call(const std::string& entry) {
  const auto [start, last] = dump::split_last(entry);
  const auto number = [](std::string_view digits) { return whole_number<std::int64_t>(digits).value_or(0); };
  if (dump::is_digits(last)) return {std::string(start), number(last)};
  const auto [base, call] = dump::split_last(start);
  if (dump::is_digits(call)) return {std::string(base) + "." + std::string(last), number(call)};
  return {entry, 0};
}

class PythonMicroSteps final : public MicroSteps {
 public:
  explicit PythonMicroSteps(const ByteSource& file) {
    dump::read_construct_members(file, [&](std::string_view name, const dump::Entry& value) {
      entries_.emplace_back(name);
      add(entries_.back(), dump::construct_parent(value));
    });
    for (const std::string& entry : entries_) {
      const std::int64_t micro_step = micro_step_of(as_forward(entry));
      if (micro_step != kNoMicroStep) places_[entry].micro_step = micro_step;
    }
    number_calls();
    entries_.clear();
  }

  std::optional<EntryPlace> place(std::string_view entry) const override {
    const std::string name(entry);
    if (places_.empty()) return EntryPlace{0, split_call(name).second};
    if (const auto found = places_.find(name); found != places_.end()) return found->second;
    if (entry.find(kGradientPart) == std::string_view::npos) return std::nullopt;
    const auto forward = places_.find(as_forward(entry));
    return EntryPlace{forward == places_.end() ? 0 : forward->second.micro_step, split_call(name).second};
  }
  std::int64_t count() const override { return std::max<std::int64_t>(count_, 1); }

 private:
  void add(const std::string& entry, std::string_view parent) {
    if (!parent.empty()) {
      parents_[entry] = as_forward(parent);
    } else if (entry.find(kBackwardPart) == std::string::npos &&
               (entry.starts_with("Module") || entry.starts_with("Cell") || entry.starts_with("optimizer"))) {
      micro_steps_[entry] = count_++;
    }
  }

  /// Of a name of a forward call; remembers what it comes by. Those that lead in a circle have none.
  std::int64_t micro_step_of(const std::string& name) {
    std::vector<std::string> way;
    std::int64_t found = kNoMicroStep;
    for (std::string at = name;;) {
      if (const auto known = micro_steps_.find(at); known != micro_steps_.end()) {
        found = known->second;
        break;
      }
      micro_steps_[at] = kNoMicroStep;
      way.push_back(at);
      const auto parent = parents_.find(at);
      if (parent == parents_.end()) break;
      at = parent->second;
    }
    for (const std::string& each : way) micro_steps_[each] = found;
    return found;
  }

  void number_calls() {
    std::map<std::pair<std::int64_t, std::string>, std::vector<std::pair<std::int64_t, const std::string*>>>
        groups;
    for (const std::string& entry : entries_) {
      const auto found = places_.find(entry);
      if (found == places_.end()) continue;
      auto [base, call] = split_call(entry);
      groups[{found->second.micro_step, std::move(base)}].emplace_back(call, &entry);
    }
    for (auto& [group, calls] : groups) {
      std::ranges::stable_sort(calls, {}, [](const auto& each) { return each.first; });
      for (std::size_t i = 0; i < calls.size(); ++i)
        places_[*calls[i].second].call = static_cast<std::int64_t>(i);
    }
  }

  std::vector<std::string> entries_;
  std::unordered_map<std::string, std::string> parents_;
  std::unordered_map<std::string, std::int64_t> micro_steps_;  // by forward calls
  std::unordered_map<std::string, EntryPlace> places_;
  std::int64_t count_ = 0;
};

}  // namespace

std::unique_ptr<MicroSteps> read_micro_steps_as_python(const ByteSource& construct) {
  return std::make_unique<PythonMicroSteps>(construct);
}

}  // namespace msprobe::monitor
