// SPDX-License-Identifier: Apache-2.0
// Source: parameters that are wrong before they are used, and updates of an optimizer.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <unordered_set>

#include "diagnosis/running_statistics.hpp"
#include "diagnosis/updates.hpp"
#include "diagnosis/walk.hpp"

namespace msprobe::diagnosis {

class ParameterRule : WalkRule {
 public:
  ParameterRule(Walk& walk, const RunningStatistics& running) : WalkRule(walk), running_(running) {}

  void judge(EntryPair& entry, std::uint32_t item, std::uint64_t key);
  /// Remembers contents that come from noise: they are noise in the next step, too. These are the parameter,
  /// and the averages and states next to it.
  void remember_noise(const EntryPair& entry);
  void finish();
  /// Whether an entry is a call of an optimizer about a parameter of another size than its partner's. Then it
  /// is not compared.
  bool is_of_another(const EntryPair& entry);
  /// Whether an entry takes a part of the parameter that its partner takes whole, or the reverse, and calls
  /// nearby take the rest. Then it is not compared.
  bool is_of_part(const EntryPair& entry);

  /// The finding about the first parameter that differs; null if no parameter differs yet.
  const Finding* first() const { return first_ ? &*first_ : nullptr; }
  double before_first() const { return before_first_; }

 private:
  ParameterStep last_step(std::uint32_t item);
  std::optional<double> gradient_error(std::uint64_t key) const;
  struct TakenContents {  // contents: the items that have them
    ContentMap target;
    ContentMap golden;
  };
  const TakenContents& taken();
  bool rests_by_rounding(const ParameterStep& step, std::uint32_t index, double u) const;
  std::string name_outside_optimizer(std::uint64_t key);
  std::uint64_t key_in_module(const EntryPair& entry, std::uint32_t index) const;
  std::uint64_t first_order_within(const EntryPair& entry) const;
  std::string other_of(std::uint32_t item, std::uint64_t key);
  bool is_unread(const EntryPair& entry, std::uint32_t item) const;
  void lead_to(const Finding& parameter);
  bool is_another(EntryPair& entry, std::uint32_t item, std::uint64_t key);

  const RunningStatistics& running_;
  ContentMap judged_contents_;
  std::unordered_set<std::uint64_t> noise_;        // contents
  std::unordered_set<std::uint32_t> takes_wrong_;  // entries: a parameter that differs after a step
  bool first_is_unread_ = false;                   // it is a running statistic with no visible effect
  std::optional<TakenContents> taken_;
  UpdateStatistics updates_;
  StepRatios steps_;
  std::optional<Finding> first_updated_;  // place of the first parameter whose update is known
  std::optional<Finding> first_;
  std::optional<std::set<std::string>> updated_;  // names that the optimizers of either side were given
  std::uint64_t wrong_ = 0;
  std::uint64_t rests_ = 0;         // of the wrong ones: as in the step before, while golden's moved
  std::uint64_t golden_rests_ = 0;  // the same of golden
  std::uint64_t outside_ = 0;       // wrong ones that no optimizer updates, running statistics among them
  std::uint64_t judged_ = 0;
  double largest_error_ = 0;
  double before_first_ = 0;  // largest error before the first
};

}  // namespace msprobe::diagnosis
