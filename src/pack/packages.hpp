// SPDX-License-Identifier: Apache-2.0
// Finds the Python packages that an interpreter would find, by reading files; it runs no interpreter.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace msprobe::pack {

struct Package {
  std::string name;  // as the package spells it
  std::string version;
};

struct Interpreter {
  std::string path;                  // as it was found
  std::string version;               // "3.11"; empty if unknown
  std::vector<std::string> folders;  // the folders of its packages, in search order
};

/// Reads an environment variable; returns null if it is not set.
using Lookup = std::function<const char*(const char*)>;

/// The interpreter to inspect: `path` if it is not empty, else the first `python3` or `python` on the PATH.
/// IoError if there is no interpreter.
Interpreter find_interpreter(const std::string& path, const Lookup& environment);

/// The packages in its folders, in the order in which the interpreter would find them; of two versions the
/// first one, which hides the other. `problems` receives the files that could not be read.
std::vector<Package> packages_of(const Interpreter& interpreter, std::vector<std::string>& problems);

/// One `Name=version` a line.
std::string package_list(const std::vector<Package>& packages);

/// Lower case, with runs of `-`, `_` and `.` as one `-`: names with equal results mean the same package.
std::string normalized_name(std::string_view name);

}  // namespace msprobe::pack
