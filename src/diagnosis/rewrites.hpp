// SPDX-License-Identifier: Apache-2.0
// Values that the two sides compute by different operations: operands in another order, a scale before a
// product instead of after it, a sum that is divided later. The differences in between are not errors.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "diagnosis/walk.hpp"

namespace msprobe::diagnosis {

class Rewrites : WalkRule {
 public:
  explicit Rewrites(Walk& walk) : WalkRule(walk) {}

  /// Looks at a forward entry before it is judged. Tensors that only lead to a value that both sides have are
  /// left out of the comparison.
  void examine(EntryPair& entry);
  /// Looks at its gradients in the same way.
  void examine_backward(std::uint32_t target_api, std::uint32_t forward);

 private:
  /// The entries that take an output of an entry, directly or through each other.
  struct Cone {
    std::vector<std::uint32_t> entries;
    std::vector<std::uint32_t> items;  // outputs of these entries and of the entry itself
  };
  /// An output of an entry of the target that golden does not have.
  struct Open {
    std::uint32_t item = 0;
    double error = 0;
    bool taken = false;
  };
  struct Rewritten {
    bool meets = false;  // its output is the same on both sides
  };

  double seen() const;
  double limit_of(std::uint32_t api) const;
  bool is_visible(const EntryPair& entry) const;
  bool is_own_input(std::uint32_t item) const;
  bool is_called_otherwise(const EntryPair& entry, const Cone& cone, const Cone& golden_cone) const;
  std::string way_of(std::uint32_t target_item, std::uint32_t golden_item) const;
  Cone cone_of(const ContentKeys& keys, std::uint32_t api) const;
  bool same(std::uint32_t target_item, std::uint32_t golden_item, double error) const;
  bool is_cut_to_same(const EntryPair& entry);
  bool meet(const EntryPair& entry, const Cone& cone, const Cone& golden_cone);
  void leave_out(std::uint32_t api, const Rewritten& how, double limit);

  std::unordered_map<std::uint32_t, Rewritten> rewritten_;  // by entry under test
  std::unordered_set<std::uint32_t> between_;               // items under test
  std::unordered_set<std::uint32_t> golden_between_;
};

}  // namespace msprobe::diagnosis
