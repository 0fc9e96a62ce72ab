// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/content_partners.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "diagnosis/flow.hpp"
#include "dump/side.hpp"
#include "pairing/places.hpp"

namespace msprobe::diagnosis {

using dump::Item;
using dump::State;
using pairing::kNone;
using pairing::name_in_model;

std::vector<std::uint32_t> partners_of(const Implementation& ours, const Implementation& theirs,
                                       const ParameterMap& parameters, const Meetings& meetings) {
  // Golden's items by content and role, the first of each; gradients by the parameter.
  std::map<std::pair<std::uint32_t, State>, std::uint32_t> golden_items;
  std::map<std::string, std::uint32_t> gradients;
  for (std::uint32_t i = 0; i < theirs.side.items.size(); ++i) {
    const Item& item = theirs.side.items[i];
    const std::uint32_t content = theirs.flow.content_of(i);
    if (content != kNone) golden_items.emplace(std::make_pair(content, item.state), i);
    if (item.state == State::parameters_grad) gradients.emplace(name_in_model(theirs.side, item), i);
  }
  std::map<std::string, std::string> parameter_of;  // of golden, by that under test
  for (const ParameterGroup& group : parameters.groups) {
    if (group.ours.size() == 1 && group.theirs.size() == 1)
      parameter_of[parameter_name(ours.flow, group.ours[0])] = parameter_name(theirs.flow, group.theirs[0]);
  }
  std::vector<std::uint32_t> partners(ours.side.items.size(), kNone);
  for (std::uint32_t i = 0; i < partners.size(); ++i) {
    const Item& item = ours.side.items[i];
    if (item.state == State::parameters_grad) {
      const auto parameter = parameter_of.find(name_in_model(ours.side, item));
      const auto gradient =
          parameter == parameter_of.end() ? gradients.end() : gradients.find(parameter->second);
      if (gradient != gradients.end()) partners[i] = gradient->second;
      continue;
    }
    const std::uint32_t content = ours.flow.content_of(i);
    const std::uint32_t golden = content == kNone ? kNone : meetings.golden_of[content];
    if (golden == kNone) continue;
    const auto same_role = golden_items.find({golden, item.state});
    partners[i] = same_role == golden_items.end() ? theirs.flow.contents()[golden].item : same_role->second;
  }
  return partners;
}

std::vector<std::uint32_t> partners_by_content(const measuring::MeasuredRank& rank) {
  const Implementation ours(rank.target, nullptr, rank.target_construct);
  const Implementation theirs(rank.golden, nullptr, rank.golden_construct);
  const Allowance allowance = allowance_of(std::max(ours.coarsest(), theirs.coarsest()), 0);
  const ParameterMap parameters = map_parameters(ours.flow, theirs.flow, allowance.norm);
  return partners_of(ours, theirs, parameters, meet(ours.flow, theirs.flow, parameters, allowance));
}

}  // namespace msprobe::diagnosis
