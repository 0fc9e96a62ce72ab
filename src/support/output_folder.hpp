// SPDX-License-Identifier: Apache-2.0
// The folder of results that are made only if there is something to tell.
#pragma once

#include <string>

namespace msprobe {

/// Throws IoError unless a folder could come to be at `folder` and files in it; leaves nothing. Lets a
/// command find out before hours of work that its result has no place.
void check_output_folder(const std::string& folder);

}  // namespace msprobe
