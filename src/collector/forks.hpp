// SPDX-License-Identifier: Apache-2.0
// Detects forks. A child made by fork() records nothing, because what is open belongs to its parent.
#pragma once

#include <cstdint>

namespace msprobe::collector {

/// The process in which it is made.
class OwnProcess {
 public:
  OwnProcess();
  /// True in a child that was forked since.
  bool left() const;

 private:
  std::uint64_t forks_;  // that led to the process
};

}  // namespace msprobe::collector
