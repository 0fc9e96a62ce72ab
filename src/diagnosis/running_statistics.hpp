// SPDX-License-Identifier: Apache-2.0
// Running statistics of a normalisation, which each of its calls changes in place. A recording has them only
// as inputs: what a call leaves in them is what the next call of the same module takes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "diagnosis/walk.hpp"

namespace msprobe::diagnosis {

class RunningStatistics : WalkRule {
 public:
  explicit RunningStatistics(Walk& walk);

  struct Left {
    std::uint32_t by = pairing::kNone;  // the call, as an entry under test; kNone: in the step before
    double error = 0;                   // what its input and the statistic before it explain
  };
  /// The call that left a running statistic as this entry takes it. Nothing if the last calls of the module
  /// are not partners.
  std::optional<Left> left(const EntryPair& entry, std::uint32_t item) const;
  /// Whether the content is a running statistic that a call of the step before left.
  bool are_left(std::uint64_t content) const { return contents_.contains(content); }
  /// Keeps what the entry explains of the statistics that it leaves.
  void remember(EntryPair& entry);
  /// The names of the statistics that an entry under test takes, the same in every step.
  std::vector<std::uint64_t> names_at(std::uint32_t target_api) const;
  /// Forgets the statistics that one side alone changes after the last common call.
  void finish();

 private:
  struct NormCalls {
    std::unordered_map<std::string, std::uint32_t> last;                  // by module and operation
    std::unordered_map<std::uint32_t, std::uint32_t> before;              // the call before, or kNone
    std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> items;  // the statistics that it takes
  };
  std::string module_of(bool is_target, std::uint32_t api) const;
  NormCalls calls_of(bool is_target) const;
  std::uint64_t name_of(bool is_target, std::uint32_t item) const;
  double momentum_of(std::uint32_t golden_api) const;

  std::array<NormCalls, 2> calls_;  // of golden, of the target
  std::unordered_set<std::uint64_t> contents_;
};

}  // namespace msprobe::diagnosis
