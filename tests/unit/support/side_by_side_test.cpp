// SPDX-License-Identifier: Apache-2.0
#include "support/side_by_side.hpp"

#include <doctest/doctest.h>

#include <filesystem>

#include "unit/support/scratch_directory.hpp"

namespace msprobe::side_by_side_test {

namespace fs = std::filesystem;

TEST_CASE("the Python tool in the folders of a program") {
  const test::ScratchDirectory folder;
  const fs::path prefix = folder.path();
  const fs::path program = prefix / "bin" / "msprobe";
  CHECK_FALSE(python_tool_beside(program));
  const fs::path packages = prefix / "lib" / "python3.11" / "site-packages";
  fs::create_directories(packages / "msprobe_native-0.2.0.dist-info");
  fs::create_directories(prefix / "lib" / "other" / "mindstudio_probe-26.2.0.dist-info");
  CHECK_FALSE(python_tool_beside(program));
  fs::create_directories(packages / "mindstudio_probe-26.2.0.dist-info");
  CHECK(python_tool_beside(program) == packages.string());
  CHECK_FALSE(python_tool_beside("msprobe"));
}

}  // namespace msprobe::side_by_side_test
