// SPDX-License-Identifier: Apache-2.0
#include "precheck/calls/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "dump/dump_json.hpp"
#include "dump/names.hpp"
#include "precheck/calls/operator_policy.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::precheck {
namespace {

using dump::Entry;
using dump::NodeKind;
using Node = Entry::Index;

constexpr std::string_view kForward = ".forward";
constexpr std::string_view kBackward = ".backward";

/// `Type.name.number`, and `Type.a.b.number`; nothing for other names.
std::optional<ApiName> api_name_of(std::string_view name) {
  const std::vector<std::string_view> parts = split(name, ".");
  if (parts.size() < 3 || std::ranges::any_of(parts, [](auto part) { return part.empty(); }))
    return std::nullopt;
  const std::string_view middle =
      name.substr(parts[0].size() + 1, name.size() - parts[0].size() - parts.back().size() - 2);
  return ApiName{std::string(parts[0]), std::string(middle), std::string(parts.back())};
}

/// What tells calls of one operation apart for `-f`: all but the values, which are statistics and file names.
void append_form(std::string& out, const Entry& entry, Node node, bool python) {
  if (entry.is_container(node)) {
    const bool is_object = entry.is(node, NodeKind::object);
    out += is_object ? '{' : '[';
    entry.children(node, [&](Node child) {
      const std::string_view key = entry.key(child);
      if (is_object && (key == "Max" || key == "Min")) return;
      if (is_object && !python && (key == "Mean" || key == "Norm" || key == "data_name" || key == "md5"))
        return;
      out += python_repr(key);
      out += ':';
      append_form(out, entry, child, python);
      out += ',';
    });
    out += is_object ? '}' : ']';
    return;
  }
  out += static_cast<char>('0' + static_cast<int>(entry.kind(node)));
  out += entry.is(node, NodeKind::string) ? python_repr(entry.text(node)) : entry.python_str(node);
}

/// The Python tool compares the dictionaries among the positional arguments alone, and all keywords with
/// their values.
std::string form_of(const Entry& entry, bool python) {
  std::string form;
  if (!entry.is(0, NodeKind::object)) return form;
  const Node arguments = entry.find(0, "input_args");
  if (entry.is(arguments, NodeKind::array)) {
    entry.children(arguments, [&](Node child) {
      if (python && !entry.is(child, NodeKind::object)) return;
      append_form(form, entry, child, python);
      form += ';';
    });
  }
  const Node keywords = entry.find(0, "input_kwargs");
  if (keywords == Entry::kNone) return form;
  if (python) {
    form += entry.python_str(keywords);
  } else {
    append_form(form, entry, keywords, python);
  }
  return form;
}

/// Why a call is not made, or nothing.
class Skipper {
 public:
  Skipper(const CallLists& lists, const PlanTraits& traits) : lists_(lists), traits_(traits) {}

  std::string reason(const std::string& name, const ApiName& api) const {
    const OperatorPolicy& rules = operator_policy();
    const bool communication = api.type == "Distributed" || api.type == "MindSpeed";
    const bool listed_black = lists_.black.contains(api.name) || rules.never_called.contains(api.name);
    const bool not_white = !lists_.white.empty() && !lists_.white.contains(api.name);
    if (traits_.python) return python_reason(name, api, communication, listed_black || not_white);
    if (rules.never_called.contains(api.name)) return "has no result to judge";
    if (lists_.black.contains(api.name)) return "on the black list";
    if (not_white) return "not on the white list";
    if (communication) return "communication is not called again";
    if (!rules.types.contains(api.type))
      return fmt::format("operations of the kind {} are not called again", display(api.type));
    if (api.type == "Aten" && !traits_.aten) return "operations of the kind Aten belong to releases 8.x";
    if (rules.random.contains(api.name)) return "its result is random";
    if (rules.uninitialized.contains(api.name)) return "its result is uninitialized memory";
    return {};
  }

 private:
  static std::string python_reason(const std::string& name, const ApiName& api, bool communication,
                                   bool listed) {
    if (communication || std::count(api.name.begin(), api.name.end(), '.') > 1)
      return fmt::format("API {} not support for acc_check. SKIP.", name);
    return listed ? fmt::format("API {} in black list or not in white list. SKIP.", api.name) : std::string();
  }

  const CallLists& lists_;
  const PlanTraits& traits_;
};

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

std::string why_not_called(const CallLists& lists, const std::string& name, const ApiName& api) {
  return Skipper(lists, {}).reason(name, api);
}

CallPlan plan_calls(const ByteSource& json, const std::string& directory, const CallLists& lists, bool filter,
                    const PlanTraits& traits) {
  CallPlan plan;
  const Skipper skipper(lists, traits);
  std::unordered_map<std::string, EntryPlace> backwards;
  std::unordered_set<std::string> forms;
  std::unordered_map<std::string, std::size_t> known;
  Entry entry;
  const auto refuse = [&](std::string_view name) {
    throw FormatError(
        json.name(),
        fmt::format("the entry '{}' is not the forward or backward of an operation", display(name)));
  };
  const dump::Header header = dump::read_values(json, [&](dump::MemberStream& stream, std::string_view name) {
    if (contains(name, "Module")) {
      stream.skip();
      return;
    }
    const bool is_forward = contains(name, "forward");
    const std::string_view ending = is_forward ? kForward : kBackward;
    if (!name.ends_with(ending)) {
      if (traits.python) refuse(name);
      stream.skip();
      return;
    }
    const std::string api(name.substr(0, name.size() - ending.size()));
    const bool look = is_forward && filter;
    const std::size_t size = look ? stream.entry(entry, name).size() : stream.skip().size();
    const EntryPlace place{stream.value_offset(), size};
    if (!is_forward) {
      backwards[api] = place;
      return;
    }
    const std::optional<ApiName> parts = api_name_of(api);
    if (look && parts &&
        !forms.insert(parts->type + '.' + parts->name + '\n' + form_of(entry, traits.python)).second) {
      ++plan.duplicates;
      return;
    }
    PlannedCall call;
    call.name = api;
    call.forward = place;
    if (parts) {
      call.api = *parts;
      call.skip = skipper.reason(api, *parts);
    } else {
      call.api.type = api;
      call.skip = traits.python ? fmt::format("API {} not support for acc_check. SKIP.", api)
                                : "not the name of an operation";
    }
    // As in Python, the last of two entries of one name counts, in the place of the first.
    const auto [at, is_new] = known.emplace(api, plan.calls.size());
    if (is_new) {
      plan.calls.push_back(std::move(call));
    } else {
      plan.calls[at->second] = std::move(call);
    }
  });
  for (PlannedCall& call : plan.calls) {
    if (const auto found = backwards.find(call.name); found != backwards.end()) call.backward = found->second;
  }
  plan.has_data = header.has_data;
  plan.framework = header.framework;
  if (header.data_directory) plan.tensor_directory = directory + "/dump_tensor_data";
  return plan;
}

}  // namespace msprobe::precheck
