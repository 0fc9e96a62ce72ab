// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/recorders.hpp"

#include <algorithm>
#include <charconv>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "diagnosis/argument_names.hpp"
#include "diagnosis/flow.hpp"
#include "diagnosis/limits.hpp"
#include "diagnosis/run_outputs.hpp"
#include "dump/names.hpp"
#include "pairing/operations.hpp"

namespace msprobe::diagnosis {
namespace {

using pairing::is_left_out;

/// Whether a side has modules but no operations, as at level L0.
bool records_modules_alone(const dump::Side& side) {
  bool modules = false;
  for (const dump::Api& api : side.apis) {
    const dump::EntryName parsed = side.parsed_name(api);
    if (parsed.direction == dump::Direction::parameters_grad) continue;
    if (!parsed.is_module) return false;
    modules = true;
  }
  return modules;
}

/// Every call gets the next number of its operation, recorded or not: does this side lack some in between
/// that the other has? The first and the last calls may be missing for other reasons.
bool has_gaps(const dump::Side& side, const dump::Side& other) {
  constexpr std::size_t kFewestGaps = 3;
  using Numbers = std::unordered_map<std::string_view, std::vector<std::uint32_t>>;
  const auto numbers_of = [](const dump::Side& of) {
    Numbers numbers;
    for (const dump::Api& api : of.apis) {
      const dump::EntryName parsed = of.parsed_name(api);
      if (parsed.is_module || parsed.direction != dump::Direction::forward || parsed.call.empty()) continue;
      std::uint32_t call = 0;
      std::from_chars(parsed.call.data(), parsed.call.data() + parsed.call.size(), call);
      numbers[parsed.base].push_back(call);
    }
    for (auto& [base, calls] : numbers) std::ranges::sort(calls);
    return numbers;
  };
  const Numbers theirs = numbers_of(other);
  std::size_t gaps = 0;
  for (const auto& [base, calls] : numbers_of(side)) {
    const auto whole = theirs.find(base);
    if (whole == theirs.end()) continue;
    for (const std::uint32_t call : whole->second)
      gaps += call < calls.back() && !std::ranges::binary_search(calls, call) ? 1 : 0;
  }
  return gaps >= kFewestGaps;
}

/// The forward calls of operations before the backward. Optimizers come later, and another implementation of
/// one makes other calls.
std::vector<std::uint32_t> forward_calls(const dump::Side& side) {
  std::vector<std::uint32_t> calls;
  for (std::uint32_t api = 0, end = first_backward(side); api < end; ++api) {
    const dump::EntryName parsed = side.parsed_name(api);
    if (!parsed.is_module && parsed.direction == dump::Direction::forward) calls.push_back(api);
  }
  return calls;
}

std::string_view shape_of_output(const dump::Side& side, std::uint32_t api) {
  for (const std::uint32_t i : side.apis[api].items()) {
    if (side.items[i].state == dump::State::output && side.items[i].is_tensor)
      return side.text(side.items[i].shape);
  }
  return {};
}

/// Whether a side has a part of the other's calls and, of most calls, none of their operations. A change of
/// the code takes some calls of an operation, or few calls.
bool records_few_operations(const dump::Side& side, const dump::Side& other) {
  if (!records_part_of(side, other)) return false;
  std::unordered_map<std::string_view, std::size_t> left;
  const std::vector<std::uint32_t> whole = forward_calls(other);
  const std::vector<std::uint32_t> part = forward_calls(side);
  if (static_cast<double>(whole.size()) < kMany) return false;
  for (const std::uint32_t api : whole) ++left[other.parsed_name(api).base];
  for (const std::uint32_t api : part) --left[side.parsed_name(api).base];
  const bool all_or_none =
      std::ranges::all_of(part, [&](std::uint32_t api) { return left[side.parsed_name(api).base] == 0; });
  const auto calls = static_cast<double>(whole.size());
  return static_cast<double>(part.size()) * (all_or_none ? 1 / kHalf : kMany) <= calls;
}

std::size_t forward_operations(const dump::Side& side) {
  std::size_t count = 0;
  for (const dump::Api& api : side.apis) {
    const dump::EntryName parsed = side.parsed_name(api);
    count += !parsed.is_module && parsed.direction == dump::Direction::forward ? 1 : 0;
  }
  return count;
}

/// The modules around each operation of a side.
class Insides {
 public:
  Insides(const dump::Side& side, const dump::ConstructTable& construct) {
    for (const dump::Api& api : side.apis) {
      const dump::EntryName parsed = side.parsed_name(api);
      if (parsed.direction != dump::Direction::forward) continue;
      if (parsed.is_module) called_.insert(parsed.base);
      if (parsed.is_module) continue;
      const auto around = construct.around(side.text(api.name));
      for (const std::string_view module : around) inside_[base_of(module)].insert(base_of(around.front()));
    }
  }

  static std::string_view base_of(std::string_view module) {
    const auto parsed = dump::parse_entry_name(module);
    return parsed ? parsed->base : module;
  }

  /// Whether the side calls a module and records no operation in it.
  bool is_silent(std::string_view base) const { return called_.contains(base) && !inside_.contains(base); }
  /// Whether the side records operations of two modules or more in a module. Operations of one module may be
  /// a change of the code.
  bool has_several(std::string_view base) const {
    const auto found = inside_.find(base);
    return found != inside_.end() && found->second.size() > 1;
  }

 private:
  std::unordered_set<std::string_view> called_;
  std::unordered_map<std::string_view, std::unordered_set<std::string_view>> inside_;  // by module
};

/// The calls of a side in modules in which the other side records no operation.
std::unordered_set<std::string> calls_in_silent_modules(const dump::Side& side, const dump::Side& other,
                                                        const dump::ConstructTable* construct,
                                                        const dump::ConstructTable* other_construct) {
  std::unordered_set<std::string> calls;
  if (construct == nullptr || other_construct == nullptr) return calls;
  if (forward_operations(side) <= forward_operations(other)) return calls;
  const Insides ours(side, *construct);
  const Insides theirs(other, *other_construct);
  for (const dump::Api& api : side.apis) {
    const dump::EntryName parsed = side.parsed_name(api);
    if (parsed.is_module || parsed.direction != dump::Direction::forward) continue;
    const bool silent =
        std::ranges::any_of(construct->around(side.text(api.name)), [&](std::string_view module) {
          return theirs.is_silent(Insides::base_of(module)) && ours.has_several(Insides::base_of(module));
        });
    if (silent) calls.insert(diagnosis::call_of(parsed));
  }
  return calls;
}

}  // namespace

bool was_asked_for(const dump::Header& of, std::string_view entry, const dump::ConstructTable* construct) {
  const auto listed = [&](std::string_view name) {
    return std::ranges::any_of(of.list,
                               [&](const std::string& part) { return name.find(part) != name.npos; });
  };
  if (of.list.empty() || listed(entry)) return true;
  return construct != nullptr && std::ranges::any_of(construct->around(entry), listed);
}

bool records_part_of(const dump::Side& part, const dump::Side& whole) {
  const std::vector<std::uint32_t> ours = forward_calls(part);
  const std::vector<std::uint32_t> theirs = forward_calls(whole);
  if (ours.empty() || ours.size() >= theirs.size()) return false;
  std::unordered_map<std::string_view, std::uint32_t> by_name;
  for (const std::uint32_t api : theirs) by_name.emplace(whole.text(whole.apis[api].name), api);
  std::unordered_set<std::uint32_t> found;
  for (const std::uint32_t api : ours) {
    const auto same = by_name.find(part.text(part.apis[api].name));
    if (same == by_name.end() || shape_of_output(part, api) != shape_of_output(whole, same->second))
      return false;
    found.insert(same->second);
  }
  return std::any_of(theirs.begin(), theirs.begin() + static_cast<std::ptrdiff_t>(ours.size()),
                     [&](std::uint32_t api) { return !found.contains(api); });
}

std::string_view ends_before(const dump::Side& side, const dump::Side& other) {
  const auto has_backward = [](const dump::Side& each) { return first_backward(each) < each.apis.size(); };
  if (!has_backward(other)) return {};
  if (!has_backward(side)) return " before its backward";
  const bool steps = !side.header.training.optimizers.empty();
  return steps || other.header.training.optimizers.empty() ? "" : " before its optimizer";
}

bool is_left_out_by_some(std::string_view base) {
  const auto [prefix, operation] = dump::split_last(base);
  return is_left_out(operation) || (prefix == "VF" && pairing::is_recurrent(operation));
}

/// How it is known that a recording was limited to some calls; empty if it was not.
std::string_view OneRecorder::filter_of(const dump::Side& side, const dump::Side& other) {
  if (!side.header.list.empty()) return "its list says so";
  if (!side.header.scope.empty()) return "its scope says so";
  if (has_gaps(side, other)) return kByGaps;
  return records_few_operations(side, other) ? "most likely: it has few calls, all of them in both" : "";
}

OneRecorder::OneRecorder(const dump::Side& side, const dump::Side& other,
                         const dump::ConstructTable* construct, const dump::ConstructTable* other_construct)
    : by_level_(records_modules_alone(other) && !records_modules_alone(side)),
      filter_(filter_of(other, side)) {
  const auto base_of = [this](const dump::Side& of, const dump::Api& api) -> std::string_view {
    const dump::EntryName parsed = of.parsed_name(api);
    const bool counts = !parsed.is_module && (parsed.direction == dump::Direction::forward ||
                                              parsed.direction == dump::Direction::backward);
    return counts && (by_level_ || is_left_out_by_some(parsed.base)) ? parsed.base : std::string_view();
  };
  std::unordered_set<std::string_view> recorded;
  for (const dump::Api& api : other.apis) {
    if (by_filter()) recorded.insert(other.text(api.name));
  }
  std::unordered_set<std::string_view> known;
  for (const dump::Api& api : other.apis) {
    if (const std::string_view base = base_of(other, api); !base.empty()) known.insert(base);
  }
  const bool same_recorder = !side.header.recorder.empty() && side.header.recorder == other.header.recorder;
  by_recorder_ = !same_recorder || std::ranges::none_of(known, is_left_out, [](std::string_view base) {
    return dump::split_last(base).second;
  });
  const std::unordered_set<std::string> silent =
      by_level_ ? std::unordered_set<std::string>()
                : calls_in_silent_modules(side, other, construct, other_construct);
  by_compiler_ = !silent.empty();
  std::unordered_set<std::string_view> named;
  for (std::uint32_t i = 0; i < side.apis.size(); ++i) {
    const dump::EntryName parsed = side.parsed_name(i);
    const std::string_view name = side.text(side.apis[i].name);
    const bool limited = by_filter() && !recorded.contains(name) &&
                         (other.header.list.empty() || !was_asked_for(other.header, name, construct));
    const bool filtered = limited || (by_compiler_ && silent.contains(call_of(parsed)));
    const std::string_view base = filtered ? parsed.base : base_of(side, side.apis[i]);
    if (base.empty() || (!filtered && known.contains(base))) continue;
    if (alone_.empty()) alone_.resize(side.apis.size());
    alone_[i] = true;
    ++calls_;
    coarsest_ = std::max(coarsest_, coarsest_of(side, i));
    if (named.insert(base).second) names_.emplace_back(base);
  }
}

std::string OneRecorder::names() const {
  constexpr std::size_t kNamed = 5;
  return list_of(names_, kNamed);
}

}  // namespace msprobe::diagnosis
