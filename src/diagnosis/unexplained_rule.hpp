// SPDX-License-Identifier: Apache-2.0
// Looks at tensors that no rule judges, for example whole numbers and inputs of modules, as long as there is
// no evidence. Most of them differ by no more than the judged tensors. One that differs by more is
// unexplained, and explains nothing itself.
#pragma once

#include "diagnosis/walk.hpp"

namespace msprobe::diagnosis {

class UnexplainedRule : WalkRule {
 public:
  explicit UnexplainedRule(Walk& walk) : WalkRule(walk) {}

  /// Fills Walk::unexplained once the entry is judged; returns whether the entry has an unexplained tensor.
  bool examine(const EntryPair& entry);

 private:
  bool any_ = false;  // the first was reported
};

}  // namespace msprobe::diagnosis
