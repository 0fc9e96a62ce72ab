// SPDX-License-Identifier: Apache-2.0
#include "precheck/calls/plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "dump/dump_json.hpp"
#include "dump/names.hpp"
#include "dump/operations.hpp"
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

/// The text by which `-f` compares calls of one operation: all but the values, which are statistics and file
/// names.
void append_form(std::string& out, const Entry& entry, Node node) {
  if (entry.is_container(node)) {
    const bool is_object = entry.is(node, NodeKind::object);
    out += is_object ? '{' : '[';
    entry.children(node, [&](Node child) {
      const std::string_view key = entry.key(child);
      if (is_object && (key == "Max" || key == "Min" || key == "Mean" || key == "Norm" ||
                        key == "data_name" || key == "md5"))
        return;
      out += python_repr(key);
      out += ':';
      append_form(out, entry, child);
      out += ',';
    });
    out += is_object ? '}' : ']';
    return;
  }
  out += static_cast<char>('0' + static_cast<int>(entry.kind(node)));
  out += entry.is(node, NodeKind::string) ? python_repr(entry.text(node)) : entry.python_str(node);
}

std::string form_of(const Entry& entry) {
  std::string form;
  if (!entry.is(0, NodeKind::object)) return form;
  const Node arguments = entry.find(0, "input_args");
  if (entry.is(arguments, NodeKind::array)) {
    entry.children(arguments, [&](Node child) {
      append_form(form, entry, child);
      form += ';';
    });
  }
  const Node keywords = entry.find(0, "input_kwargs");
  if (keywords != Entry::kNone) append_form(form, entry, keywords);
  return form;
}

Framework called_framework(const std::string& recorded, Framework wanted, const std::string& path) {
  const Framework found = recorded == "pytorch"     ? Framework::pytorch
                          : recorded == "mindspore" ? Framework::mindspore
                                                    : Framework::unspecified;
  if (recorded.empty()) return wanted == Framework::mindspore ? wanted : Framework::pytorch;
  if (found == Framework::unspecified || (wanted != Framework::unspecified && wanted != found))
    throw FormatError(path, fmt::format("only operations of {} are called again, not those of {}",
                                        wanted == Framework::unspecified ? "pytorch and mindspore"
                                        : wanted == Framework::mindspore ? "mindspore"
                                                                         : "pytorch",
                                        display(recorded)));
  return found;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace

std::string why_not_called(const CallLists& lists, const ApiName& api, Framework framework) {
  const OperatorPolicy& rules = operator_policy();
  const bool mindspore = framework == Framework::mindspore;
  const bool is_called = mindspore && dump::is_listed("mindspore_called", api.name);
  if (dump::is_listed("never_called", api.name) && !is_called) return "has no result to judge";
  if (lists.black.contains(api.name)) return "on the black list";
  if (!lists.white.empty() && !lists.white.contains(api.name)) return "not on the white list";
  if (api.type == "Distributed" || api.type == "MintDistributed" || api.type == "MindSpeed")
    return "communication is not called again";
  const auto& types = mindspore ? rules.mindspore_types : rules.types;
  if (!types.contains(api.type))
    return fmt::format("operations of the kind {} are not called again", display(api.type));
  if (is_always_random(api)) return "its result is random";
  if (dump::is_listed("uninitialized", api.name)) return "its result is uninitialized memory";
  return {};
}

CallPlan plan_calls(const ByteSource& json, const CallLists& lists, bool filter, Framework wanted) {
  CallPlan plan;
  std::unordered_map<std::string, dump::EntryPlace> backwards;
  std::unordered_set<std::string> forms;
  std::unordered_map<std::string, std::size_t> known;
  Entry entry;
  const dump::Header header = dump::read_values(json, [&](dump::MemberStream& stream, std::string_view name) {
    if (contains(name, "Module")) {
      stream.skip();
      return;
    }
    const bool is_forward = contains(name, "forward");
    const std::string_view ending = is_forward ? kForward : kBackward;
    if (!name.ends_with(ending)) {
      stream.skip();
      return;
    }
    const std::string api(name.substr(0, name.size() - ending.size()));
    const bool look = is_forward && filter;
    const std::size_t size = look ? stream.entry(entry, name).size() : stream.skip().size();
    const dump::EntryPlace place{stream.value_offset(), size};
    if (!is_forward) {
      backwards[api] = place;
      return;
    }
    const std::optional<ApiName> parts = api_name_of(api);
    if (look && parts && !forms.insert(parts->type + '.' + parts->name + '\n' + form_of(entry)).second) {
      ++plan.duplicates;
      return;
    }
    PlannedCall call;
    call.name = api;
    call.forward = place;
    if (parts) {
      call.api = *parts;
    } else {
      call.api.type = api;
      call.skip = "not the name of an operation";
    }
    // If two entries have one name, the last one counts, at the place of the first.
    const auto [at, is_new] = known.emplace(api, plan.calls.size());
    if (is_new) {
      plan.calls.push_back(std::move(call));
    } else {
      plan.calls[at->second] = std::move(call);
    }
  });
  plan.framework = called_framework(header.framework, wanted, json.name());
  for (PlannedCall& call : plan.calls) {
    if (call.skip.empty()) call.skip = why_not_called(lists, call.api, plan.framework);
    if (const auto found = backwards.find(call.name); found != backwards.end()) call.backward = found->second;
  }
  plan.has_data = header.has_data;
  if (header.data_directory) {
    const std::string folder = std::filesystem::path(json.name()).parent_path().string();
    plan.tensor_directory = (folder.empty() ? "." : folder) + "/dump_tensor_data";
  }
  return plan;
}

}  // namespace msprobe::precheck
