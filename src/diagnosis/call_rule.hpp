// SPDX-License-Identifier: Apache-2.0
// Structure: the arguments, dtypes and shapes in which two calls differ, and whether that has an effect.
#pragma once

#include <cstdint>
#include <optional>
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

  /// Looks for differences in how the two calls of an entry were called. A number whose difference may be
  /// rounding counts as an error of the inputs.
  void examine(EntryPair& entry);
  void show_effect(EntryPair& entry, std::uint32_t forward, double error, double before, double ahead,
                   double onset);
  /// Adds a shape that differs at an earlier call to the evidence of the entry. Called once the entry is
  /// judged.
  void recall_shape(EntryPair& entry);
  /// Adds to a finding how many more calls have the same difference.
  void count_repeated(Finding& found) const;

 private:
  /// The first entry whose call has an argument that differs, and how many later calls have the same
  /// difference.
  struct Repeated {
    std::uint32_t first = 0;
    std::uint64_t times = 0;
  };
  /// A call with another shape that had no effect so far, and how many calls have followed it.
  struct Rearranged {
    std::uint32_t call = 0;  // of quiet_calls_
    unsigned behind = 0;
  };
  /// The last call with exchanged operands, and how many calls may still show the effect.
  struct Exchanged {
    std::uint32_t call = 0;  // of quiet_calls_
    std::string module;
    unsigned looks = 0;
  };
  double judge(EntryPair& entry);
  const Rearranged* rearranged_ahead(const EntryPair& entry) const;
  bool has_effect(const EntryPair& entry, const StructuralDifference& difference, double e_out) const;
  bool is_cast_ahead(const EntryPair& entry, std::uint32_t item) const;
  bool is_finer_by_other_calls(const EntryPair& entry, const StructuralDifference& difference, double e_out);
  void await_effect(const EntryPair& entry, Finding found);
  bool are_exchanged(const EntryPair& entry) const;
  void recall_exchanged(EntryPair& entry);

  OneSidedRuns& runs_;
  GradientPaths& paths_;
  std::vector<Finding> quiet_calls_;  // calls that differ without an effect on the output
  std::unordered_map<std::uint32_t, std::uint32_t>
      quiet_at_;  // by entry: these calls, and those that made their inputs
  std::unordered_map<std::uint32_t, Rearranged>
      rearranged_;  // by entry: the call, and the calls that take its outputs
  /// Entries that compute in the finer type of other calls before them: the largest error before these.
  std::unordered_map<std::uint32_t, double> retyped_;
  std::optional<Exchanged> exchanged_;
  std::unordered_map<std::string, Repeated> repeated_;  // by the call and its argument
};

}  // namespace msprobe::diagnosis
