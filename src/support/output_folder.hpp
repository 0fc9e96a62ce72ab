// SPDX-License-Identifier: Apache-2.0
// Checks the folder of results that are written only if there is something to report.
#pragma once

#include <string>

namespace msprobe {

/// Throws IoError unless `folder` and files in it could be created; leaves nothing. A command calls it before
/// hours of work, to learn that its result cannot be stored.
void check_output_folder(const std::string& folder);

}  // namespace msprobe
