// SPDX-License-Identifier: Apache-2.0
// Parts of the work and their times, for --verbose.
#pragma once

#include <chrono>
#include <string>

namespace msprobe {

/// Tells with --verbose, when it ends, how long a part of the work took: `   0.123 s  reading …`. Nothing if
/// it ends by an exception.
class Stage {
 public:
  explicit Stage(std::string name);
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

 private:
  std::string name_;  // empty: nobody asked
  int exceptions_ = 0;
  std::chrono::steady_clock::time_point begun_;
};

/// What the process took so far: its time since `begun` and the most memory, as one line.
std::string usage_line(std::chrono::steady_clock::time_point begun);

}  // namespace msprobe
