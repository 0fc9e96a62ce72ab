// SPDX-License-Identifier: Apache-2.0
// Pairs the entries of both sides by their operation and their place, not by their names, which carry call
// numbers (docs/how-it-decides.md, "What is compared with what").
#pragma once

#include <cstdint>
#include <vector>

#include "dump/construct_json.hpp"
#include "dump/side.hpp"

namespace msprobe::pairing {

inline constexpr std::uint32_t kNone = UINT32_MAX;

/// An entry that only golden has.
struct GoldenOnly {
  std::uint32_t golden = 0;
  /// The entry of the target after which it comes: the partner of the last golden entry before it that has
  /// one; kNone at the beginning.
  std::uint32_t after = kNone;
};

struct Alignment {
  std::vector<std::uint32_t> golden_of;  // by entry under test: its partner, or kNone
  std::vector<std::uint32_t> target_of;  // by entry of golden
  /// The partner of each item under test, or kNone: the item of golden with the same place in the entry that
  /// is the partner of its entry.
  std::vector<std::uint32_t> golden_item_of;
  std::vector<GoldenOnly> golden_only;  // in the order of golden
  /// Calls of an optimizer for parameters that the other side does not have; they have no partner.
  std::vector<bool> target_update_alone;  // empty: no such calls
  std::vector<bool> golden_update_alone;
  /// Gradients of parameters after a backward pass of a step that the other side does not run. They add up
  /// until the optimizer takes them, so that the last ones before its step are partners; these have none, and
  /// no step takes them alone.
  std::vector<bool> target_earlier_pass;  // empty: both sides run as many passes
  std::vector<bool> golden_earlier_pass;
  bool renamed = false;    // an entry is paired with one of another name
  bool same_order = true;  // all entries have partners and both orders are one

  bool has_golden(std::uint32_t target) const { return golden_of[target] != kNone; }
  bool is_update_alone(std::uint32_t target) const {
    return target < target_update_alone.size() && target_update_alone[target];
  }
  bool has_other_passes() const { return !target_earlier_pass.empty(); }
  bool is_golden_update_alone(std::uint32_t golden) const {
    return golden < golden_update_alone.size() && golden_update_alone[golden];
  }
};

/// Checks that golden_of and target_of are inverse.
void check_inverse(const Alignment& alignment);

/// The golden entries without a partner. Each comes after the partner of the last entry before it that has
/// one.
std::vector<GoldenOnly> golden_only_of(const std::vector<std::uint32_t>& target_of);

/// Aligns forward entries as sequences; backward entries and gradients of parameters follow their forward
/// entries. Takes time linear in both sides. The tables of construct.json may be null; a table that only one
/// side has is not used.
Alignment align(const dump::Side& target, const dump::Side& golden,
                const dump::ConstructTable* target_construct = nullptr,
                const dump::ConstructTable* golden_construct = nullptr);

}  // namespace msprobe::pairing
