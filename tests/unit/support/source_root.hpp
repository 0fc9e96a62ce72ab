// SPDX-License-Identifier: Apache-2.0
// Where tests find the fixtures and documents that they read.
#pragma once

#include <cstdlib>
#include <string>

namespace msprobe::test {

/// The path of a file of the source, such as "docs/collector.md".
inline std::string in_source(const std::string& path) {
  const char* const root = std::getenv("MSPROBE_SOURCE_ROOT");
  return std::string(root == nullptr ? "." : root) + "/" + path;
}

}  // namespace msprobe::test
