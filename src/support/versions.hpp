// SPDX-License-Identifier: Apache-2.0
// The text of --version, and the way the program is linked.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace msprobe {

/// True if this program contains all of its libraries, including the C library.
bool linked_statically();

/// `msprobe X.Y.Z`, then one line for each library: the version that runs, if the library can report it, else
/// the one at compile time; then the compiler, how the program is linked, and its arithmetic: the kernels
/// that are used here, and all that this machine could use.
std::string version_text(std::string_view kernels, const std::vector<std::string_view>& available);

}  // namespace msprobe
