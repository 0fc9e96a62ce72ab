// SPDX-License-Identifier: Apache-2.0
// Folders that hold weights, but none that are read: a message can then say what they are and what helps.
#pragma once

#include <string>

namespace msprobe::checkpoint {

/// "an Orbax checkpoint, which is not read: ...", or the download that was not finished. Empty if the folder
/// tells nothing. Looks at names alone.
std::string unread_folder_reason(const std::string& folder);

}  // namespace msprobe::checkpoint
