// SPDX-License-Identifier: Apache-2.0
// Where modules alone are recorded (level L0), the code of the calling module makes every change between two
// of its children.
#pragma once

#include "diagnosis/walk.hpp"

namespace msprobe::diagnosis {

class EnclosingCode : WalkRule {
 public:
  explicit EnclosingCode(Walk& walk);

  /// Adds the module around the entry, and the stretch between two of its children, to a finding about an
  /// input of the entry.
  void name(Finding& finding, const EntryPair& entry) const;

 private:
  /// The last module before the entry that the same module calls; empty if no such module exists.
  std::string_view before(std::uint32_t target_api, std::string_view around) const;

  bool modules_only_ = false;
};

}  // namespace msprobe::diagnosis
