// SPDX-License-Identifier: Apache-2.0
// The text of --version, and how the program is linked.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace msprobe {

/// Whether this program holds all of its libraries, the C library too.
bool linked_statically();

/// `msprobe X.Y.Z`, one line a library: what runs, where the library can tell, else what was compiled in;
/// then the compiler, how the program is linked, and its arithmetic: the kernels that are used here, and all
/// that this machine could use.
std::string version_text(std::string_view kernels, const std::vector<std::string_view>& available);

}  // namespace msprobe
