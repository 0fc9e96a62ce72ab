// SPDX-License-Identifier: Apache-2.0
#include "pairing/updates.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "dump/names.hpp"
#include "pairing/alignment.hpp"
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

}  // namespace

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
    const std::string_view entry = side.text(side.apis[item.api].name);
    const std::string_view own = dump::split_last(side.name(item)).second;
    add(item, std::hash<std::string>{}(without_wrappers(module_path(entry)) + '.' + std::string(own)) | 1);
  }
}

std::uint64_t Parameters::of(const Item& item) const {
  const auto found = names_.find(content(item));
  return found == names_.end() ? 0 : found->second;
}

std::vector<std::uint64_t> updated_parameters(const Side& side, const dump::ConstructTable& construct) {
  std::vector<std::uint64_t> found(side.apis.size());
  const Parameters parameters(side);
  if (parameters.empty()) return found;
  // Calls that take what others put out are about one parameter.
  std::vector<std::uint32_t> calls;
  std::vector<std::uint32_t> first_of;  // by call: one that it belongs with
  std::vector<std::uint64_t> name_of;   // by call that others belong with
  const auto root = [&](std::uint32_t call) {
    while (first_of[call] != call) call = first_of[call] = first_of[first_of[call]];
    return call;
  };
  std::unordered_map<std::uint64_t, std::uint32_t> maker;  // by content
  for (std::uint32_t api = 0; api < side.apis.size(); ++api) {
    if (construct.parent(side.text(side.apis[api].name)) != kOptimizer) continue;
    auto call = static_cast<std::uint32_t>(calls.size());
    calls.push_back(api);
    first_of.push_back(call);
    name_of.push_back(0);
    for (const std::uint32_t i : side.apis[api].items()) {
      const std::uint64_t content = parameters.content(side.items[i]);
      if (content == 0 || side.items[i].state != State::input) continue;
      const std::uint32_t own = root(call);
      if (const auto made = maker.find(content); made != maker.end() && root(made->second) != own) {
        const std::uint32_t other = root(made->second);
        if (name_of[other] == 0) name_of[other] = name_of[own];
        first_of[own] = other;
      }
      if (const std::uint64_t name = parameters.of(side.items[i]); name != 0 && name_of[root(call)] == 0)
        name_of[root(call)] = name;
    }
    for (const std::uint32_t i : side.apis[api].items()) {
      const std::uint64_t content = parameters.content(side.items[i]);
      if (content != 0 && side.items[i].state == State::output) maker[content] = call;
    }
  }
  for (std::uint32_t call = 0; call < calls.size(); ++call) found[calls[call]] = name_of[root(call)];
  return found;
}

std::vector<std::uint64_t> update_order(std::vector<std::uint64_t> parameters) {
  std::erase(parameters, 0);
  parameters.erase(std::unique(parameters.begin(), parameters.end()), parameters.end());
  return parameters;
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
}

}  // namespace msprobe::pairing
