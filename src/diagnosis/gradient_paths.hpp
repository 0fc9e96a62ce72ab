// SPDX-License-Identifier: Apache-2.0
// Gradients that flow on one side alone: tensors that are cut off (detach, no_grad, parameters that are not
// trained), and the backward entries that one side lacks for that reason.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "diagnosis/walk.hpp"

namespace msprobe::diagnosis {

class GradientPaths : WalkRule {
 public:
  explicit GradientPaths(Walk& walk) : WalkRule(walk) {}

  void await(const EntryPair& entry, Finding found, const std::string& given);
  void show();
  void missing_backward(EntryPair& entry, double error, double before);
  /// Whether gradients flow through a call on one side alone, and by other operations on the other.
  bool any_cut() const { return !cut_.empty(); }
  bool is_backward_one_sided(std::uint32_t forward) { return is_one_sided(backward_alone(forward)); }
  /// The finding about backward entries of one side on the way of a wrong gradient. `forwards`: numbers of
  /// their forward entries. Its text is empty if no backward of these was recorded.
  Finding missing(const std::vector<std::uint32_t>& forwards, const Finding& effect, double error);
  /// The number of the forward of a backward entry of one side; kNone for other entries and where no forward
  /// was recorded.
  std::uint32_t forward_of(bool is_target, std::uint32_t backward);
  /// The backward of a forward entry under test; kNone if it was not recorded.
  std::uint32_t backward_of(std::uint32_t forward) const;

 private:
  enum class Alone : std::uint8_t { neither, target, golden, both };
  static bool is_one_sided(Alone alone) { return alone == Alone::target || alone == Alone::golden; }
  Alone backward_alone(std::uint32_t forward);
  bool lacks_backward(std::uint32_t forward);
  std::uint32_t call_before(std::uint32_t forward) const;
  std::string paths_of_one_side(std::uint32_t forward);

  std::vector<std::pair<Finding, double>>
      cuts_;                               // gradients flow on one side alone; the largest error before
  std::unordered_set<std::uint32_t> cut_;  // entries at such a cut
};

}  // namespace msprobe::diagnosis
