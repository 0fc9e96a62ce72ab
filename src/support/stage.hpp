// SPDX-License-Identifier: Apache-2.0
// Measures parts of the work for --verbose.
#pragma once

#include <chrono>
#include <string>

namespace msprobe {

/// With --verbose, logs at its end how long a part of the work took: `   0.123 s  reading …`. Logs nothing if
/// an exception ends it.
class Stage {
 public:
  explicit Stage(std::string name);
  ~Stage();
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

 private:
  std::string name_;  // empty: not requested
  int exceptions_ = 0;
  std::chrono::steady_clock::time_point begun_;
};

/// A line with the time of the process since `begun` and its peak memory.
std::string usage_line(std::chrono::steady_clock::time_point begun);

}  // namespace msprobe
