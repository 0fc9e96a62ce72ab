// SPDX-License-Identifier: Apache-2.0
#include "compare/sinks/row_sample.hpp"

#include <algorithm>

namespace msprobe::compare {
namespace {

constexpr std::size_t kReach = 4;  // groups before and after an urgent one

void find_near(std::vector<RowGroup>& groups) {
  std::size_t since = kReach + 1;
  const auto look = [&](RowGroup& group) {
    since = group.urgency < Urgency::near ? 0 : since + 1;
    if (since <= kReach && group.urgency == Urgency::other) group.urgency = Urgency::near;
  };
  std::for_each(groups.begin(), groups.end(), look);
  since = kReach + 1;
  std::for_each(groups.rbegin(), groups.rend(), look);
}

}  // namespace

std::vector<bool> sample_groups(std::vector<RowGroup> groups, std::size_t room) {
  find_near(groups);
  std::vector<bool> shown(groups.size(), false);
  for (const Urgency urgency :
       {Urgency::named, Urgency::cause, Urgency::error, Urgency::warning, Urgency::near, Urgency::other}) {
    std::size_t lines = 0;
    for (const RowGroup& group : groups) lines += group.urgency == urgency ? group.lines : 0;
    if (lines == 0) continue;
    std::size_t passed = 0;
    std::size_t taken = 0;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (groups[i].urgency != urgency) continue;
      passed += groups[i].lines;
      const std::size_t due = passed * std::min(room, lines) / lines;
      if (taken + groups[i].lines > due) continue;
      taken += groups[i].lines;
      shown[i] = true;
    }
    room -= taken;
  }
  return shown;
}

}  // namespace msprobe::compare
