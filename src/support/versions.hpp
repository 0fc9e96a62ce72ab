// SPDX-License-Identifier: Apache-2.0
// The text of --version.
#pragma once

#include <string>

namespace msprobe {

/// `msprobe X.Y.Z` and one line a library: what runs, where the library can tell, else what was compiled in.
std::string version_text();

}  // namespace msprobe
