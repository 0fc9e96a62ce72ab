// SPDX-License-Identifier: Apache-2.0
#include "pairing/updates.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>
#include <utility>

#include "dump/names.hpp"
#include "pairing/alignment.hpp"
#include "pairing/places.hpp"
#include "support/wrapper_names.hpp"

namespace msprobe::pairing {
namespace {

using dump::Api;
using dump::Item;
using dump::Side;
using dump::State;

std::uint64_t stirred(std::uint64_t seed, std::uint64_t value) {
  seed ^= value + 0x9e3779b97f4a7c15ULL + (seed << 6) + (seed >> 2);
  return seed * 0xff51afd7ed558ccdULL;
}

/// Where an element of a list stands: `.input.3.17` is {3, 17}.
using ListPlace = std::pair<std::uint32_t, std::uint32_t>;
std::optional<ListPlace> list_place(const Side& side, const Item& item) {
  const Place place = place_of(side, item);
  std::string_view rest = place.rest;
  if (place.front.empty()) return std::nullopt;
  ListPlace found;
  const auto number = [&](std::uint32_t& value) {
    const auto end = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    if (end.ec != std::errc()) return false;
    rest.remove_prefix(static_cast<std::size_t>(end.ptr - rest.data()));
    return true;
  };
  if (!number(found.first) || !rest.starts_with('.')) return std::nullopt;
  rest.remove_prefix(1);
  if (!number(found.second) || !rest.empty()) return std::nullopt;
  return found;
}

std::vector<std::uint32_t> outputs_of(const Side& side, const Api& api) {
  std::vector<std::uint32_t> outputs;
  for (const std::uint32_t i : api.items())
    if (side.items[i].state == State::output) outputs.push_back(i);
  return outputs;
}

/// The optimizer's calls of a side.
struct Updates {
  std::vector<std::uint64_t> parameters;  // by entry: the parameter that a call of an optimizer updates, or 0
  bool complete = true;  // the parameter is known for all such calls, except for those on constants
  std::unordered_set<std::uint64_t> known;  // parameters that the calls take; one call may take many
  std::unordered_set<std::uint64_t> model;  // all parameters of modules
  std::vector<std::uint32_t> calls;         // of optimizers
  std::multiset<std::uint64_t> sizes;  // shapes of the first tensors that these take, with the operations
};

/// The operation, and the shape of the first tensor that it takes.
std::uint64_t kind_of(const Side& side, std::uint32_t api) {
  const dump::EntryName parsed = side.parsed_name(api);
  std::uint64_t kind = std::hash<std::string_view>{}(parsed.base);
  for (const std::uint32_t i : side.apis[api].items()) {
    if (side.items[i].state != State::input || !side.items[i].is_tensor) continue;
    return stirred(kind, std::hash<std::string_view>{}(side.text(side.items[i].shape)));
  }
  return kind;
}

Updates updates_of(const Side& side, const dump::ConstructTable& construct) {
  Updates found;
  found.parameters.resize(side.apis.size());
  const Parameters parameters(side);
  for (const Item& item : side.items) {
    if (item.state == State::parameters || item.state == State::parameters_grad)
      found.model.insert(parameter_key(side, item));
  }
  // A call that takes an output of another call updates the same parameter.
  std::vector<std::uint32_t>& calls = found.calls;
  std::vector<bool> plain;              // by call: it takes and gives constants alone
  std::vector<std::uint32_t> first_of;  // by call: another call about the same parameter
  std::vector<std::uint64_t> name_of;   // by the first call of such a group: the name of the parameter
  const auto root = [&](std::uint32_t call) {
    while (first_of[call] != call) call = first_of[call] = first_of[first_of[call]];
    return call;
  };
  std::unordered_map<std::uint64_t, std::uint32_t> maker;  // by content
  for (std::uint32_t api = 0; api < side.apis.size(); ++api) {
    if (construct.parent(side.text(side.apis[api].name)) != kOptimizer) continue;
    const auto call = static_cast<std::uint32_t>(calls.size());
    calls.push_back(api);
    plain.push_back(true);
    first_of.push_back(call);
    name_of.push_back(0);
    found.sizes.insert(kind_of(side, api));
    for (const std::uint32_t i : side.apis[api].items()) {
      const std::uint64_t content = parameters.content(side.items[i]);
      if (content == 0) continue;
      plain[call] = false;
      if (side.items[i].state != State::input) continue;
      const std::uint32_t own = root(call);
      if (const auto made = maker.find(content); made != maker.end() && root(made->second) != own) {
        const std::uint32_t other = root(made->second);
        if (name_of[other] == 0) name_of[other] = name_of[own];
        first_of[own] = other;
      }
      const std::uint64_t name = parameters.of(side.items[i]);
      if (name == 0) continue;
      found.known.insert(name);
      if (name_of[root(call)] == 0) name_of[root(call)] = name;
    }
    for (const std::uint32_t i : side.apis[api].items()) {
      const std::uint64_t content = parameters.content(side.items[i]);
      if (content != 0 && side.items[i].state == State::output) maker[content] = call;
    }
  }
  for (std::uint32_t call = 0; call < calls.size(); ++call) {
    found.parameters[calls[call]] = name_of[root(call)];
    found.complete = found.complete && (plain[call] || name_of[root(call)] != 0);
  }
  return found;
}

/// The order in which the parameters are updated.
std::vector<std::uint64_t> order_of(std::vector<std::uint64_t> parameters) {
  std::erase(parameters, 0);
  parameters.erase(std::unique(parameters.begin(), parameters.end()), parameters.end());
  return parameters;
}

/// Whether two orders go through the parameters that both have in another sequence.
bool are_reordered(std::vector<std::uint64_t> one, std::vector<std::uint64_t> other) {
  const std::unordered_set<std::uint64_t> in_one(one.begin(), one.end());
  const std::unordered_set<std::uint64_t> in_other(other.begin(), other.end());
  std::erase_if(one, [&](std::uint64_t parameter) { return !in_other.contains(parameter); });
  std::erase_if(other, [&](std::uint64_t parameter) { return !in_one.contains(parameter); });
  return one != other;
}

/// The calls of an optimizer that nothing names, by operation and shape.
using Unnamed = std::unordered_map<std::uint64_t, std::vector<std::uint32_t>>;

Unnamed unnamed_of(const Side& side, const Updates& updates) {
  Unnamed found;
  for (const std::uint32_t call : updates.calls)
    if (updates.parameters[call] == 0) found[kind_of(side, call)].push_back(call);
  return found;
}

/// Marks the calls of which the other side has as many.
std::vector<bool> in_both(const Side& side, const Unnamed& own, const Unnamed& other) {
  std::vector<bool> found(side.apis.size());
  for (const auto& [kind, calls] : own) {
    const auto same = other.find(kind);
    if (same == other.end() || same->second.size() != calls.size()) continue;
    for (const std::uint32_t call : calls) found[call] = true;
  }
  return found;
}

/// Marks the entries whose parameter is not in `known`, the parameters of the other side.
std::vector<bool> alone(const std::vector<std::uint64_t>& own,
                        const std::unordered_set<std::uint64_t>& known) {
  std::vector<bool> found(own.size());
  for (std::size_t api = 0; api < own.size(); ++api) found[api] = own[api] != 0 && !known.contains(own[api]);
  return found;
}

/// The calls by parameter and operation.
std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> calls_of(
    const Side& side, const std::vector<std::uint64_t>& parameters) {
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> calls;
  for (std::uint32_t api = 0; api < parameters.size(); ++api) {
    if (parameters[api] == 0) continue;
    const std::size_t base = std::hash<std::string_view>{}(side.parsed_name(api).base);
    calls[stirred(parameters[api], base)].push_back(api);
  }
  return calls;
}

}  // namespace

std::uint64_t parameter_key(const Side& side, const Item& item) {
  return std::hash<std::string>{}(name_in_model(side, item)) | 1;
}

std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> calls_by_parameter(
    const Side& side, const dump::ConstructTable& construct) {
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> calls;
  const Parameters parameters(side);
  for (std::uint32_t api = 0; api < side.apis.size(); ++api) {
    if (construct.parent(side.text(side.apis[api].name)) != kOptimizer) continue;
    for (const std::uint32_t i : side.apis[api].items()) {
      if (side.items[i].state != State::input) continue;
      if (const std::uint64_t name = parameters.of(side.items[i]); name != 0) calls[name].push_back(api);
    }
  }
  return calls;
}

std::uint64_t Parameters::content(const Item& item) const {
  if (!item.is_tensor || !dump::is_recorded(item.statistics[dump::kNorm])) return 0;
  const auto bits = [&](dump::Statistic which) {
    return static_cast<std::uint64_t>(item.statistics[which].integer);
  };
  if (bits(dump::kMax) == bits(dump::kMin)) return 0;
  std::uint64_t key = std::hash<std::string_view>{}(side_.text(item.shape));
  for (const dump::Statistic which : {dump::kMax, dump::kMin, dump::kMean, dump::kNorm})
    key = stirred(key, bits(which));
  return key | 1;
}

void Parameters::add(const Item& item, std::uint64_t name) {
  const std::uint64_t key = content(item);
  if (key == 0) return;
  const auto [known, added] = names_.try_emplace(key, name);
  if (!added && known->second != name) known->second = 0;
}

Parameters::Parameters(const Side& side) : side_(side) {
  for (const Item& item : side.items) {
    if (item.state != State::parameters && item.state != State::parameters_grad) continue;
    add(item, parameter_key(side, item));
  }
}

std::uint64_t Parameters::of(const Item& item) const {
  const auto found = names_.find(content(item));
  return found == names_.end() ? 0 : found->second;
}

std::optional<UpdatePairs> pair_updates(const Side& target, const dump::ConstructTable& target_construct,
                                        const Side& golden, const dump::ConstructTable& golden_construct) {
  if (!target_construct.knows(kOptimizer) || !golden_construct.knows(kOptimizer)) return std::nullopt;
  const Updates ours = updates_of(target, target_construct);
  const Updates theirs = updates_of(golden, golden_construct);
  const std::vector<std::uint64_t> order = order_of(ours.parameters);
  const std::vector<std::uint64_t> golden_order = order_of(theirs.parameters);
  if (order.empty() || golden_order.empty() || order == golden_order) return std::nullopt;
  UpdatePairs found;
  // Where some parameters are not known, a parameter counts as missing only if no module of the other side
  // has it.
  const bool complete = ours.complete && theirs.complete;
  found.target_alone = alone(ours.parameters, complete ? theirs.known : theirs.model);
  found.golden_alone = alone(theirs.parameters, complete ? ours.known : ours.model);
  const auto golden_calls = calls_of(golden, theirs.parameters);
  for (const auto& [what, calls] : calls_of(target, ours.parameters)) {
    const auto partners = golden_calls.find(what);
    // If one side has more calls, only their order could show which are missing, so that these stay unpaired.
    if (partners == golden_calls.end() || calls.size() != partners->second.size()) continue;
    for (std::size_t i = 0; i < calls.size(); ++i) found.pairs.emplace_back(calls[i], partners->second[i]);
  }
  if (complete) {
    // Calls on constants alone, such as the first moments, do not say which parameter they belong to.
    const auto mark = [](const Side& side, const Updates& updates, std::vector<bool>& alone) {
      const bool lists = std::any_of(updates.calls.begin(), updates.calls.end(), [&](std::uint32_t call) {
        return takes_parameter_lists(side.text(side.apis[call].name));
      });
      for (const std::uint32_t call : updates.calls)
        if (!lists && updates.parameters[call] == 0) alone[call] = true;
    };
    mark(target, ours, found.target_alone);
    mark(golden, theirs, found.golden_alone);
    return found;
  }
  // Both sides update the same parameters, whose modules one side does not record; or they have the same
  // modules.
  if (ours.sizes == theirs.sizes || ours.model == theirs.model) {
    found.target_alone.clear();
    found.golden_alone.clear();
    if (are_reordered(order, golden_order)) {
      // Calls that nothing names, as on clipped gradients, have their partners at an unknown place.
      const auto unnamed = unnamed_of(target, ours);
      const auto golden_unnamed = unnamed_of(golden, theirs);
      found.target_alone = in_both(target, unnamed, golden_unnamed);
      found.golden_alone = in_both(golden, golden_unnamed, unnamed);
    }
    return found;
  }
  // The sides update different parameters, so that a call with an unknown parameter may belong to any of
  // them.
  for (const std::uint32_t call : ours.calls) found.target_alone[call] = true;
  for (const std::uint32_t call : theirs.calls) found.golden_alone[call] = true;
  for (const auto& [call, partner] : found.pairs)
    found.target_alone[call] = found.golden_alone[partner] = false;
  return found;
}

bool takes_parameter_lists(std::string_view entry) {
  const auto parsed = dump::parse_entry_name(entry);
  if (!parsed || parsed->is_module) return false;
  return parsed->operation().starts_with("_fused_") || parsed->operation().starts_with("_foreach_");
}

void pair_lists(const Side& target, const Api& ours, const Side& golden, const Api& theirs,
                const Parameters& target_parameters, const Parameters& golden_parameters,
                std::vector<std::uint32_t>& partners) {
  std::map<ListPlace, std::uint32_t> our_items;
  std::map<ListPlace, std::uint32_t> their_items;
  std::unordered_map<std::uint64_t, std::uint32_t> element_of;  // golden's, by parameter
  std::map<std::uint32_t, std::uint32_t> golden_element;        // by element of the target
  for (const std::uint32_t i : theirs.items()) {
    const auto place =
        golden.items[i].state == State::input ? list_place(golden, golden.items[i]) : std::nullopt;
    if (!place) continue;
    their_items[*place] = i;
    if (const std::uint64_t name = golden_parameters.of(golden.items[i]); name != 0)
      element_of.try_emplace(name, place->second);
  }
  bool moved = false;
  for (const std::uint32_t i : ours.items()) {
    const auto place =
        target.items[i].state == State::input ? list_place(target, target.items[i]) : std::nullopt;
    if (!place) continue;
    our_items[*place] = i;
    const auto partner = element_of.find(target_parameters.of(target.items[i]));
    if (partner == element_of.end()) continue;
    golden_element.try_emplace(place->second, partner->second);
    moved = moved || partner->second != place->second;
  }
  if (!moved) return;
  for (const auto& [place, item] : our_items) {
    const auto element = golden_element.find(place.second);
    const auto partner = element == golden_element.end() ? their_items.end()
                                                         : their_items.find({place.first, element->second});
    partners[item] = partner == their_items.end() ? kNone : partner->second;
  }
  // Each element has its own output, as a norm, or the call has others that no element shows.
  const std::vector<std::uint32_t> our_outputs = outputs_of(target, ours);
  const std::vector<std::uint32_t> their_outputs = outputs_of(golden, theirs);
  const auto elements = [](const std::map<ListPlace, std::uint32_t>& items) {
    std::uint32_t count = 0;
    for (const auto& [place, item] : items) count = std::max(count, place.second + 1);
    return count;
  };
  if (our_outputs.size() != elements(our_items) || their_outputs.size() != elements(their_items)) return;
  for (std::uint32_t i = 0; i < our_outputs.size(); ++i) {
    const auto element = golden_element.find(i);
    partners[our_outputs[i]] = element == golden_element.end() ? kNone : their_outputs[element->second];
  }
}

}  // namespace msprobe::pairing
