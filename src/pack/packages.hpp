// SPDX-License-Identifier: Apache-2.0
// The Python packages that an interpreter would find, told from the files that say so: no interpreter is run.
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
  std::string version;               // "3.11"; empty if nothing tells
  std::vector<std::string> folders;  // where its packages are, first one first
};

/// Reads an environment variable; null if there is none.
using Lookup = std::function<const char*(const char*)>;

/// The interpreter to look at: `path` if that is not empty, else the first `python3` or `python` on the PATH.
/// IoError if there is none.
Interpreter find_interpreter(const std::string& path, const Lookup& environment);

/// The packages in its folders, in the order in which it would find them; of two versions the first, which
/// hides the other. `problems` gets what could not be read.
std::vector<Package> packages_of(const Interpreter& interpreter, std::vector<std::string>& problems);

/// One `Name=version` a line.
std::string package_list(const std::vector<Package>& packages);

/// Lower case, runs of `-`, `_` and `.` as one `-`: names that are equal so are one package.
std::string normalized_name(std::string_view name);

}  // namespace msprobe::pack
