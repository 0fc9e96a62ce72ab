// SPDX-License-Identifier: Apache-2.0
// The text of --version.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace msprobe {

/// `msprobe X.Y.Z`, one line a library: what runs, where the library can tell, else what was compiled in;
/// then the compiler, how the program is linked, and its arithmetic: the kernels that are used here, and all
/// that this machine could use.
std::string version_text(std::string_view kernels, const std::vector<std::string_view>& available);

}  // namespace msprobe
