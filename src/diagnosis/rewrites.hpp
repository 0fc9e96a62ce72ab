// SPDX-License-Identifier: Apache-2.0
// What the two sides compute by other operations to the same value: operands in another order, a scale before
// a product and not behind it, a sum that is divided later. What lies between is no error.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "diagnosis/walk.hpp"

namespace msprobe::diagnosis {

class Rewrites : WalkRule {
 public:
  explicit Rewrites(Walk& walk) : WalkRule(walk) {}

  /// Of a forward entry, before it is judged: what is only on the way to a value that both sides have is left
  /// out of what is compared.
  void examine(EntryPair& entry);
  /// The same of its gradients.
  void examine_backward(std::uint32_t target_api, std::uint32_t forward);

 private:
  /// The entries that take what an entry puts out, directly or through others of them.
  struct Cone {
    std::vector<std::uint32_t> entries;
    std::vector<std::uint32_t> items;  // that these and the entry put out
  };
  /// What an entry under test puts out and golden does not have.
  struct Open {
    std::uint32_t item = 0;
    double error = 0;
    bool taken = false;
  };
  struct Rewritten {
    bool meets = false;  // what it puts out is the same on both sides
  };

  double seen() const;
  double limit_of(std::uint32_t api) const;
  bool is_visible(const EntryPair& entry) const;
  bool is_own_input(std::uint32_t item) const;
  bool is_called_otherwise(const EntryPair& entry, const Cone& cone, const Cone& golden_cone) const;
  Cone cone_of(const ContentKeys& keys, std::uint32_t api) const;
  bool same(std::uint32_t target_item, std::uint32_t golden_item, double error) const;
  bool meet(const EntryPair& entry, const Cone& cone, const Cone& golden_cone);
  void leave_out(std::uint32_t api, const Rewritten& how, double limit);

  std::unordered_map<std::uint32_t, Rewritten> rewritten_;  // by entry under test
  std::unordered_set<std::uint32_t> between_;               // items under test
  std::unordered_set<std::uint32_t> golden_between_;
};

}  // namespace msprobe::diagnosis
