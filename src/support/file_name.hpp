// SPDX-License-Identifier: Apache-2.0
// Makes file names from the names of entries.
#pragma once

#include <string>
#include <string_view>

namespace msprobe {

/// `name` as a file name with `suffix` ("pt"): replaces characters that readers reject and cuts long names. A
/// changed name ends in a number made of the whole name, so that different names stay different.
std::string file_name(std::string_view name, std::string_view suffix);

}  // namespace msprobe
