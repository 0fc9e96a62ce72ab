// SPDX-License-Identifier: Apache-2.0
// Where modules alone are recorded (level L0): what changes between two of them is the code of the module
// that calls both.
#pragma once

#include "diagnosis/walk.hpp"

namespace msprobe::diagnosis {

class EnclosingCode : WalkRule {
 public:
  explicit EnclosingCode(Walk& walk);

  /// Names the module around the entry, and the stretch between two of its children, in a finding about what
  /// the entry was given.
  void name(Finding& finding, const EntryPair& entry) const;

 private:
  /// The last module before the entry that is called by the same one; empty if there is none.
  std::string_view before(std::uint32_t target_api, std::string_view around) const;

  bool has_input(std::uint32_t module, std::uint64_t content) const;
  bool hands_on(std::uint32_t module, std::uint32_t child) const;

  bool modules_only_ = false;
};

}  // namespace msprobe::diagnosis
