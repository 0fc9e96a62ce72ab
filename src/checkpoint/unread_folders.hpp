// SPDX-License-Identifier: Apache-2.0
// Recognizes folders with weights in forms that are not read, so that a message can say what they are and
// what helps.
#pragma once

#include <string>

namespace msprobe::checkpoint {

/// "an Orbax checkpoint, which is not read: ...", or a text about an unfinished download. Empty if the names
/// in the folder say nothing. Only names are examined.
std::string unread_folder_reason(const std::string& folder);

}  // namespace msprobe::checkpoint
