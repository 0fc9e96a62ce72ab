// SPDX-License-Identifier: Apache-2.0
// Rules of evidence that look at a whole step at once: each is an object in a file of its own, and a line in
// step_rules.cpp. They run before the entries are judged one by one; what they explain is judged by no other
// rule.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "diagnosis/finding.hpp"
#include "diagnosis/imports.hpp"
#include "diagnosis/item_errors.hpp"
#include "diagnosis/rank_diagnosis.hpp"
#include "measuring/measured_rank.hpp"

namespace msprobe::diagnosis {

/// What such a rule goes by: statistics, which are there even where tensors are read later (--first).
struct StepView {
  const dump::Side& target;
  const dump::Side& golden;
  const ItemErrors& errors;  // for partners and tolerances
  const History& history;    // of the steps before
};

/// One cause for many errors. The finding has its kind, its confidence, its words, and the entry under test
/// where it is reported.
struct StepExplanation {
  Finding finding;
  std::vector<std::uint32_t> items;  // under test, ascending
};

class StepRule {
 public:
  virtual ~StepRule() = default;
  /// Nothing if the step is not like that.
  virtual std::optional<StepExplanation> examine(const StepView& step) const = 0;
};

std::unique_ptr<StepRule> gradients_not_zeroed();

/// All of them, in the order in which they are asked: the first that explains an item counts.
const std::vector<std::unique_ptr<StepRule>>& step_rules();

/// The key of a gradient in History: its module and parameter, as every step calls them.
std::uint64_t gradient_key(std::string_view module, std::string_view item_name);

}  // namespace msprobe::diagnosis
