// SPDX-License-Identifier: Apache-2.0
#include "diagnosis/step_rule.hpp"

#include <utility>

namespace msprobe::diagnosis {

StepExplanations::StepExplanations(Walk& walk) : walk_(walk) {
  const StepView step{walk_.target, walk_.golden, walk_.errors, walk_.history};
  for (const StepRule rule : kStepRules) {
    std::optional<StepExplanation> found = rule(step);
    if (!found || walk_.options.without.contains(found->finding.rule)) continue;
    for (const std::uint32_t item : found->items)
      explained_.try_emplace(item, static_cast<std::uint32_t>(findings_.size()));
    findings_.emplace_back(std::move(found->finding));
  }
}

bool StepExplanations::explains(EntryPair& entry, std::uint32_t item) {
  const auto found = explained_.find(item);
  if (found == explained_.end()) return false;
  if (std::optional<Finding> finding = std::exchange(findings_[found->second], std::nullopt)) {
    finding->item = item;
    finding->target_api = entry.target;
    finding->order = walk_.order_of(entry.target);
    finding->downstream = entry.touched || walk_.history.evidence;
    walk_.offer(entry, std::move(*finding));
  }
  entry.touched = true;
  return true;
}

}  // namespace msprobe::diagnosis
