// SPDX-License-Identifier: Apache-2.0
// Manual pages: text written by hand, completed from the declarations of commands and options.
#pragma once

#include <istream>
#include <string>
#include <string_view>

#include "support/command_line.hpp"

namespace msprobe {

/// `page` is roff. Replaces its lines `.\" SYNOPSIS`, `.\" OPTIONS` and `.\" COMMANDS` by the program's data
/// about `command`: empty for the program itself, the first word of names for a group.
std::string fill_page(const ProgramInfo& info, std::string_view command, std::istream& page);

}  // namespace msprobe
