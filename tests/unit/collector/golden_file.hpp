// SPDX-License-Identifier: Apache-2.0
// The golden cases of the training monitor.
#pragma once

#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace msprobe::test {

inline nlohmann::ordered_json monitor_golden(const std::string& name) {
  const char* root = std::getenv("MSPROBE_SOURCE_ROOT");
  REQUIRE(root != nullptr);
  std::ifstream file(std::string(root) + "/tests/data/golden/monitor/" + name);
  REQUIRE(file.good());
  return nlohmann::ordered_json::parse(file);
}

}  // namespace msprobe::test
