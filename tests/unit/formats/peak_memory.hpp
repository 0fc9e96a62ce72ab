// SPDX-License-Identifier: Apache-2.0
// How much memory a piece of work took at its worst.
#pragma once

#include <cstddef>
#include <fstream>
#include <functional>
#include <string>

namespace msprobe::formats {

/// A line of /proc/self/status, in bytes; 0 if it is not there.
inline std::size_t status_bytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.starts_with(name + ":")) return std::stoull(line.substr(name.size() + 1)) * 1024;
  }
  return 0;
}

/// Growth of the resident set at its peak while `work` ran. 0 where that cannot be measured: under
/// sanitizers, which keep freed memory, and where the kernel does not let the peak be reset.
inline std::size_t peak_growth(const std::function<void()>& work) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  work();
  return 0;
#else
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak is now what is resident
  const std::size_t before = status_bytes("VmHWM");
  work();
  const std::size_t after = status_bytes("VmHWM");
  return after > before ? after - before : 0;
#endif
}

}  // namespace msprobe::formats
