// SPDX-License-Identifier: Apache-2.0
// Structure: what two calls were given otherwise, and whether it has an effect.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "diagnosis/gradient_paths.hpp"
#include "diagnosis/one_sided_runs.hpp"
#include "diagnosis/structure.hpp"
#include "diagnosis/walk.hpp"

namespace msprobe::diagnosis {

class CallRule : WalkRule {
 public:
  CallRule(Walk& walk, OneSidedRuns& runs, GradientPaths& paths)
      : WalkRule(walk), runs_(runs), paths_(paths) {}

  /// Numbers that differ by so little that it may be rounding count as an error of the inputs.
  void examine(EntryPair& entry);
  void show_effect(EntryPair& entry, std::uint32_t forward, double error, double before, double ahead,
                   double onset);
  /// Once the entry is judged: adds to its evidence a shape that differs ahead of it.
  void recall_shape(EntryPair& entry);
  /// Adds to a finding how many more calls were given the same.
  void count_repeated(Finding& found) const;

 private:
  /// An argument of the first entry that was called so, and how often others were.
  struct Repeated {
    std::uint32_t first = 0;
    std::uint64_t times = 0;
  };
  /// A call with another shape, without effect so far, and how many calls are between.
  struct Rearranged {
    std::uint32_t call = 0;  // of quiet_calls_
    unsigned behind = 0;
  };
  double judge(EntryPair& entry);
  const Rearranged* rearranged_ahead(const EntryPair& entry) const;
  bool has_effect(const EntryPair& entry, const StructuralDifference& difference, double e_out) const;
  bool is_cast_ahead(const EntryPair& entry, std::uint32_t item) const;
  void await_effect(const EntryPair& entry, Finding found);

  OneSidedRuns& runs_;
  GradientPaths& paths_;
  std::vector<Finding> quiet_calls_;  // with another argument, and without effect on the output
  std::unordered_map<std::uint32_t, std::uint32_t> quiet_at_;  // they, and what gave them their inputs
  std::unordered_map<std::uint32_t, Rearranged> rearranged_;   // it, and what takes what it put out
  std::unordered_map<std::string, Repeated> repeated_;         // by the call and its argument
};

}  // namespace msprobe::diagnosis
