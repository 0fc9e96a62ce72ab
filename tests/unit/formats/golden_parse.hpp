// SPDX-License-Identifier: Apache-2.0
// Kernel dumps with what the Python tool made of them (tests/data/golden/parse).
#pragma once

#include <fstream>
#include <iterator>
#include <string>

#include "support/error.hpp"
#include "unit/support/source_root.hpp"

namespace msprobe::formats {

inline std::string golden_parse() {
  return test::in_source("tests/data/golden/parse/");
}

inline std::string file_text(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw IoError(path, "cannot be read by the test");
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

}  // namespace msprobe::formats
