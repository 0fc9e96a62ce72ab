// SPDX-License-Identifier: Apache-2.0
// Compares settings of the training: optimizers, which parameters they update, and which parameters are tied.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "diagnosis/taken_gradients.hpp"
#include "diagnosis/walk.hpp"
#include "dump/training.hpp"

namespace msprobe::diagnosis {

class TrainingRule : WalkRule {
 public:
  explicit TrainingRule(Walk& walk)
      : WalkRule(walk),
        target_training_(walk.target.header.training),
        golden_training_(walk.golden.header.training) {}

  /// Runs before the entries are judged, since parameters that are tied in one run only are so from the
  /// start.
  void compare_tied();
  /// Runs after the entries are judged, since the effect of a setting shows in the step that follows.
  void compare_optimizers();

 private:
  void compare_gradients(const std::vector<TakenGradient>& gradients);
  void compare_taken();
  void compare_lost();
  void compare_skipped();
  void mark_consequences();
  bool is_tied(const Finding& found) const;
  void compare(const dump::OptimizerSettings& target, const dump::OptimizerSettings& golden);
  /// The other fields of a finding of this rule.
  struct About {
    Confidence confidence = Confidence::certain;
    std::string side = "a setting, not a kernel";
    std::string next = {};
    std::string place = {};
    Finding at = {};  // its places
    bool downstream = false;
    bool behind = false;  // it follows from what golden alone runs there
  };
  void found(std::uint32_t at, std::string text, std::size_t concerned, const About& about);
  std::uint32_t first_of_optimizer() const;
  std::uint32_t first_under(std::string_view parent, bool of_target) const;
  bool clips_late(bool of_target) const;
  struct Factors;
  bool make_one_norm(const Factors& ours, const Factors& theirs) const;
  std::string clipping(const Factors& ours, const Factors& theirs, std::size_t count) const;
  Finding clipping_call() const;
  std::uint32_t behind_clipping() const;
  bool is_clipped_otherwise() const;

  const dump::Training& target_training_;
  const dump::Training& golden_training_;
  std::map<std::tuple<std::string, std::string, std::string>, std::set<std::string>>
      said_;                                 // by setting and both values: the parameters already named
  std::set<std::string, std::less<>> tied_;  // names of parameters that only one run ties
};

}  // namespace msprobe::diagnosis
