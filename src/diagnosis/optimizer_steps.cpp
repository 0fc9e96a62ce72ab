// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/optimizer_steps.hpp"

#include <algorithm>
#include <set>

namespace msprobe::diagnosis {
namespace {

using dump::OptimizerGroup;
using dump::OptimizerSettings;

std::set<std::string> names_in(const OptimizerSettings& optimizer) {
  std::set<std::string> names;
  for (const auto& [name, group] : groups_by_parameter(optimizer)) names.insert(name);
  return names;
}

std::size_t common_of(const std::set<std::string>& some, const std::set<std::string>& others) {
  return static_cast<std::size_t>(
      std::ranges::count_if(some, [&](const std::string& name) { return others.contains(name); }));
}

}  // namespace

GroupsByParameter groups_by_parameter(const OptimizerSettings& optimizer) {
  GroupsByParameter groups;
  for (const OptimizerGroup& group : optimizer.groups) {
    for (const std::string& name : group.parameters) {
      if (name.empty()) return {};
      groups[name] = &group;
    }
  }
  return groups;
}

std::vector<SameSteps> same_steps(const std::vector<OptimizerSettings>& ours,
                                  const std::vector<OptimizerSettings>& theirs) {
  std::vector<std::set<std::string>> own;
  std::vector<std::set<std::string>> other;
  for (const OptimizerSettings& each : ours) own.push_back(names_in(each));
  for (const OptimizerSettings& each : theirs) other.push_back(names_in(each));
  std::vector<SameSteps> found;
  std::vector<bool> taken(theirs.size());
  const auto is_rest = [](const std::set<std::string>& part, const std::set<std::string>& whole,
                          const std::vector<std::size_t>& others,
                          const std::vector<std::set<std::string>>& names) {
    return !part.empty() && common_of(part, whole) == part.size() &&
           std::ranges::none_of(others, [&](std::size_t each) { return common_of(part, names[each]) > 0; });
  };
  std::vector<std::size_t> left;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const auto whole = std::ranges::find_if(
        found, [&](const SameSteps& each) { return is_rest(own[i], other[each.theirs[0]], each.ours, own); });
    if (whole != found.end()) {
      whole->ours.push_back(i);
      continue;
    }
    std::size_t most = 0;
    std::size_t best = theirs.size();
    for (std::size_t j = 0; j < theirs.size(); ++j) {
      const std::size_t common = taken[j] ? 0 : common_of(own[i], other[j]);
      if (common <= most) continue;
      most = common;
      best = j;
    }
    if (best == theirs.size()) {
      left.push_back(i);
      continue;
    }
    taken[best] = true;
    found.push_back({{i}, {best}});
  }
  std::size_t next = 0;
  for (std::size_t j = 0; j < theirs.size(); ++j) {
    if (taken[j]) continue;
    const auto whole = std::ranges::find_if(found, [&](const SameSteps& each) {
      return !each.ours.empty() && is_rest(other[j], own[each.ours[0]], each.theirs, other);
    });
    if (whole != found.end()) {
      whole->theirs.push_back(j);
    } else if (next < left.size()) {
      found.push_back({{left[next++]}, {j}});
    } else {
      found.push_back({{}, {j}});
    }
  }
  for (; next < left.size(); ++next) found.push_back({{left[next]}, {}});
  return found;
}

OptimizerSettings joined_steps(const std::vector<OptimizerSettings>& optimizers,
                               const std::vector<std::size_t>& steps) {
  OptimizerSettings whole = optimizers[steps[0]];
  for (std::size_t i = 1; i < steps.size(); ++i)
    whole.groups.insert(whole.groups.end(), optimizers[steps[i]].groups.begin(),
                        optimizers[steps[i]].groups.end());
  return whole;
}

}  // namespace msprobe::diagnosis
