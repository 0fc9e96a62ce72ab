// SPDX-License-Identifier: Apache-2.0
// Rules of evidence that look at a whole step at once; each has a separate file. They run before the entries
// are judged one by one. No other rule judges an error that they explain.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "diagnosis/finding.hpp"
#include "diagnosis/item_errors.hpp"
#include "diagnosis/rank_diagnosis.hpp"
#include "diagnosis/walk.hpp"
#include "dump/side.hpp"

namespace msprobe::diagnosis {

/// The input of such a rule: statistics, which are available even where tensors are read later (--first).
struct StepView {
  const dump::Side& target;
  const dump::Side& golden;
  const ItemErrors& errors;  // for partners and tolerances
  const History& history;    // of the steps before
};

/// One cause for many errors. The finding has its kind, its confidence and its text; the walk reports it at
/// the first of these items that it reaches.
struct StepExplanation {
  Finding finding;
  std::vector<std::uint32_t> items;  // under test
};

/// Returns nothing if the rule does not apply to the step.
using StepRule = std::optional<StepExplanation> (*)(const StepView& step);

std::optional<StepExplanation> gradients_not_zeroed(const StepView& step);

/// In the order in which they are asked: the first rule that explains an item counts.
inline constexpr std::array<StepRule, 1> kStepRules = {gradients_not_zeroed};

/// The errors that the rules explain in a step.
class StepExplanations {
 public:
  /// Asks all rules.
  explicit StepExplanations(Walk& walk);
  /// Whether a rule explains the error of an item; reports the rule at the first such item.
  bool explains(EntryPair& entry, std::uint32_t item);

 private:
  Walk& walk_;
  std::vector<std::optional<Finding>> findings_;                // not reported yet
  std::unordered_map<std::uint32_t, std::uint32_t> explained_;  // items: which of these
};

}  // namespace msprobe::diagnosis
