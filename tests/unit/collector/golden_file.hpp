// SPDX-License-Identifier: Apache-2.0
// The golden cases of the training monitor.
#pragma once

#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "unit/support/source_root.hpp"

namespace msprobe::test {

inline nlohmann::ordered_json monitor_golden(const std::string& name) {
  std::ifstream file(test::in_source("tests/data/golden/monitor/" + name));
  REQUIRE(file.good());
  return nlohmann::ordered_json::parse(file);
}

}  // namespace msprobe::test
