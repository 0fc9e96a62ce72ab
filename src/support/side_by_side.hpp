// SPDX-License-Identifier: Apache-2.0
// Detects the Python tool in the folders of this program: both have a command and a package named msprobe.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace msprobe {

/// The folder of packages beside `program` (<prefix>/bin/msprobe) that holds the Python tool.
std::optional<std::string> python_tool_beside(const std::filesystem::path& program);

/// Warns if the Python tool is beside the running program.
void warn_of_python_tool();

}  // namespace msprobe
