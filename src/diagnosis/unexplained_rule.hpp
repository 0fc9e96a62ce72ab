// SPDX-License-Identifier: Apache-2.0
// Tensors ahead of all evidence that no rule judges, as whole numbers and what modules take: they differ by
// no more than what was judged; what does is unexplained, and explains nothing.
#pragma once

#include "diagnosis/walk.hpp"

namespace msprobe::diagnosis {

class UnexplainedRule : WalkRule {
 public:
  explicit UnexplainedRule(Walk& walk) : WalkRule(walk) {}

  /// Once the entry is judged: fills Walk::unexplained. Is there anything?
  bool examine(const EntryPair& entry);

 private:
  bool any_ = false;  // the first was reported
};

}  // namespace msprobe::diagnosis
