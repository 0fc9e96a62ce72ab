// SPDX-License-Identifier: Apache-2.0
// Names of entries as names of files.
#pragma once

#include <string>
#include <string_view>

namespace msprobe {

/// `name` as that of a file with `suffix` ("pt"): characters that the readers refuse are replaced, names that
/// are too long are cut; such names end in a number made of the whole, so that they stay different.
std::string file_name(std::string_view name, std::string_view suffix);

}  // namespace msprobe
