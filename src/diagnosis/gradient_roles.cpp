// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/gradient_roles.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "diagnosis/alignment.hpp"
#include "dump/names.hpp"

namespace msprobe::diagnosis {
namespace {

using dump::Api;
using dump::Side;

bool is_backward_entry(const Side& side, const Api& api) {
  const auto parsed = dump::parse_entry_name(side.text(api.name));
  return parsed && parsed->direction == dump::Direction::backward;
}

std::vector<std::uint32_t> outputs_of(const Side& side, const Api& api) {
  std::vector<std::uint32_t> outputs;
  for (std::uint32_t i = api.first; i < api.first + api.count; ++i) {
    if (side.items[i].state == dump::State::output) outputs.push_back(i);
  }
  return outputs;
}

}  // namespace

bool gives_gradients_otherwise(const Side& target, const Side& golden) {
  const auto by_graph = [](const Side& side) { return side.header.framework == "pytorch"; };
  const auto by_argument = [](const Side& side) {
    return side.header.is_mindspore() || side.header.framework == "mindtorch";
  };
  return (by_graph(target) && by_argument(golden)) || (by_argument(target) && by_graph(golden));
}

std::vector<std::uint32_t> gradients_by_role(const Side& target, const Api& ours, const Side& golden,
                                             const Api& theirs) {
  if (!is_backward_entry(target, ours)) return {};
  const auto our_shape = [&](std::uint32_t i) { return target.text(target.items[i].shape); };
  const auto their_shape = [&](std::uint32_t i) { return golden.text(golden.items[i].shape); };
  std::vector<std::uint32_t> gradients = outputs_of(target, ours);
  const std::vector<std::uint32_t> others = outputs_of(golden, theirs);
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

}  // namespace msprobe::diagnosis
