// SPDX-License-Identifier: Apache-2.0
// Rules of evidence that look at a whole step at once, each in a file of its own. They run before the entries
// are judged one by one; what they explain is judged by no other rule.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "diagnosis/finding.hpp"
#include "diagnosis/imports.hpp"
#include "diagnosis/item_errors.hpp"
#include "diagnosis/rank_diagnosis.hpp"
#include "diagnosis/walk.hpp"

namespace msprobe::diagnosis {

/// What such a rule goes by: statistics, which are there even where tensors are read later (--first).
struct StepView {
  const dump::Side& target;
  const dump::Side& golden;
  const ItemErrors& errors;  // for partners and tolerances
  const History& history;    // of the steps before
};

/// One cause for many errors. The finding has its kind, its confidence and its words; it is reported at the
/// first of the items that the walk comes to.
struct StepExplanation {
  Finding finding;
  std::vector<std::uint32_t> items;  // under test
};

/// Nothing if the step is not like that.
using StepRule = std::optional<StepExplanation> (*)(const StepView& step);

std::optional<StepExplanation> gradients_not_zeroed(const StepView& step);

/// In the order in which they are asked: the first that explains an item counts.
inline constexpr std::array<StepRule, 1> kStepRules = {gradients_not_zeroed};

/// What the rules explain in a step.
class StepExplanations {
 public:
  /// Asks all rules.
  explicit StepExplanations(Walk& walk);
  /// An error that a rule explains; the rule is reported at the first of them.
  bool explains(EntryPair& entry, std::uint32_t item);

 private:
  Walk& walk_;
  std::vector<std::optional<Finding>> findings_;                // not reported yet
  std::unordered_map<std::uint32_t, std::uint32_t> explained_;  // items: which of these
};

}  // namespace msprobe::diagnosis
