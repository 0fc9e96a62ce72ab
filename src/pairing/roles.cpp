// SPDX-License-Identifier: Apache-2.0
#include "pairing/roles.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "dump/names.hpp"
#include "pairing/alignment.hpp"
#include "pairing/operations.hpp"
#include "pairing/places.hpp"
#include "support/ascii.hpp"

namespace msprobe::pairing {
namespace {

using dump::Api;
using dump::Direction;
using dump::Item;
using dump::Side;
using dump::State;

std::vector<std::uint32_t> items_of(const Side& side, const Api& api, State state) {
  std::vector<std::uint32_t> items;
  for (const std::uint32_t i : api.items()) {
    if (side.items[i].state == state) items.push_back(i);
  }
  return items;
}

std::vector<std::uint32_t> gradients_by_shape(const Side& target, const Api& ours, const Side& golden,
                                              const Api& theirs) {
  const auto our_shape = [&](std::uint32_t i) { return target.text(target.items[i].shape); };
  const auto their_shape = [&](std::uint32_t i) { return golden.text(golden.items[i].shape); };
  std::vector<std::uint32_t> gradients = items_of(target, ours, State::output);
  const std::vector<std::uint32_t> others = items_of(golden, theirs, State::output);
  if (std::equal(gradients.begin(), gradients.end(), others.begin(), others.end(),
                 [&](std::uint32_t t, std::uint32_t g) { return our_shape(t) == their_shape(g); })) {
    return {};
  }
  std::unordered_map<std::string_view, std::vector<std::uint32_t>> left;  // by shape, the last one first
  for (std::size_t i = others.size(); i-- > 0;) left[their_shape(others[i])].push_back(others[i]);
  for (std::uint32_t& gradient : gradients) {
    std::vector<std::uint32_t>& of_shape = left[our_shape(gradient)];
    gradient = of_shape.empty() ? kNone : of_shape.back();
    if (!of_shape.empty()) of_shape.pop_back();
  }
  return gradients;
}

/// The PyTorch name of a parameter that MindSpore's module has, too.
std::string_view pytorch_name(std::string_view name) {
  if (name == "gamma" || name == "embedding_table") return "weight";
  return name == "beta" ? "bias" : name;
}

/// `gamma` of `.parameters.gamma`; names of gradients end with their place in a list, `.gamma.0`, or not.
std::string_view parameter_name(const Side& side, const Item& item) {
  auto [front, name] = dump::split_last(place_of(side, item).rest);
  return dump::is_digits(name) && !front.empty() ? dump::split_last(front).second : name;
}

std::vector<std::uint32_t> parameters_by_name(const Side& target, const Api& ours, const Side& golden,
                                              const Api& theirs, State state) {
  const std::vector<std::uint32_t> parameters = items_of(target, ours, state);
  const std::vector<std::uint32_t> others = items_of(golden, theirs, state);
  std::unordered_map<std::string_view, std::uint32_t> left;
  for (const std::uint32_t other : others)
    left.try_emplace(parameter_name(golden, golden.items[other]), other);
  std::vector<std::uint32_t> partners;
  std::size_t paired = 0;
  for (const std::uint32_t parameter : parameters) {
    const auto found = left.find(parameter_name(target, target.items[parameter]));
    partners.push_back(found == left.end() ? kNone : found->second);
    if (found == left.end()) continue;
    left.erase(found);
    ++paired;
  }
  if (paired == parameters.size() || left.empty()) return {};
  std::unordered_map<std::string_view, std::uint32_t> called_otherwise;
  for (const auto& [name, other] : left) called_otherwise.try_emplace(pytorch_name(name), other);
  bool any = false;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    if (partners[i] != kNone) continue;
    const auto found =
        called_otherwise.find(pytorch_name(parameter_name(target, target.items[parameters[i]])));
    if (found == called_otherwise.end()) continue;
    partners[i] = found->second;
    called_otherwise.erase(found);
    any = true;
  }
  return any ? partners : std::vector<std::uint32_t>();
}

}  // namespace

bool gives_gradients_otherwise(const Side& target, const Side& golden) {
  const auto by_graph = [](const Side& side) { return side.header.framework == "pytorch"; };
  const auto by_argument = [](const Side& side) {
    return side.header.is_mindspore() || side.header.framework == "mindtorch";
  };
  return (by_graph(target) && by_argument(golden)) || (by_argument(target) && by_graph(golden));
}

bool is_no_gradient(const Side& side, const Item& item) {
  if (item.state != State::output || side.text(item.dtype) != "None") return false;
  const dump::EntryName entry = side.parsed_name(item.api);
  return entry.direction == Direction::backward;
}

bool pairs_by_role(const Side& target, const Side& golden) {
  return gives_gradients_otherwise(target, golden) || of_other_operations(target, golden);
}

RolePartners by_role(const Side& target, const Api& ours, const Side& golden, const Api& theirs) {
  const dump::EntryName parsed = target.parsed_name(ours);
  switch (parsed.direction) {
    case Direction::backward:
      if (!gives_gradients_otherwise(target, golden)) return {};
      return {State::output, gradients_by_shape(target, ours, golden, theirs)};
    case Direction::forward:
    case Direction::parameters_grad: {
      if (!parsed.is_module || !of_other_operations(target, golden)) return {};
      const State state = parsed.direction == Direction::forward ? State::parameters : State::parameters_grad;
      return {state, parameters_by_name(target, ours, golden, theirs, state)};
    }
    case Direction::debug:
      break;
  }
  return {};
}

bool of_other_frameworks(const Side& target, const Side& golden) {
  const std::string& ours = target.header.framework;
  const std::string& theirs = golden.header.framework;
  return ours != theirs && !ours.empty() && !theirs.empty();
}

bool of_other_operations(const Side& target, const Side& golden) {
  return of_other_frameworks(target, golden) && target.header.is_mindspore() != golden.header.is_mindspore();
}

std::optional<std::size_t> position_of(const Side& side, const Item& item) {
  const Place place = place_of(side, item);
  return place.front.empty() ? std::nullopt : whole_number<std::size_t>(place.rest);
}

void for_each_parameter(const Side& target, const std::vector<std::uint32_t>& golden_item,
                        const std::function<void(std::uint32_t item, std::uint32_t golden)>& take) {
  for (const dump::Api& api : target.apis) {
    const dump::EntryName parsed = target.parsed_name(api);
    if (parsed.direction != dump::Direction::forward) continue;
    for (const std::uint32_t i : api.items()) {
      const Item& item = target.items[i];
      if (!item.is_tensor || golden_item[i] == kNone || item.state == State::output) continue;
      const auto position = item.state == State::input ? position_of(target, item) : std::nullopt;
      if (item.state == State::parameters ||
          (position && is_parameter_position(parsed.operation(), *position)))
        take(i, golden_item[i]);
    }
  }
}

std::string place_text(const Side& side, const Item& item) {
  const Place place = place_of(side, item);
  std::string text(place.front);
  text += place.rest;
  if (text.starts_with('.')) text.erase(0, 1);
  return text;
}

}  // namespace msprobe::pairing
