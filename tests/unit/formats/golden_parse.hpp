// SPDX-License-Identifier: Apache-2.0
// Kernel dumps with what the Python tool made of them (tests/data/golden/parse).
#pragma once

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "support/error.hpp"

namespace msprobe::formats {

inline std::string golden_parse() {
  const char* root = std::getenv("MSPROBE_SOURCE_ROOT");
  return std::string(root == nullptr ? "." : root) + "/tests/data/golden/parse/";
}

inline std::string file_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw IoError(path, "cannot be read by the test");
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace msprobe::formats
