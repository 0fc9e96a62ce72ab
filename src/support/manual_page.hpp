// SPDX-License-Identifier: Apache-2.0
// Manual pages: prose by hand, and what the declarations of commands and options say.
#pragma once

#include <istream>
#include <string>
#include <string_view>

#include "support/command_line.hpp"

namespace msprobe {

/// `page` is roff. Its lines `.\" SYNOPSIS`, `.\" OPTIONS` and `.\" COMMANDS` are replaced by what the
/// program knows of `command`: empty for the program itself, the first word of names for a group.
std::string fill_page(const ProgramInfo& info, std::string_view command, std::istream& page);

}  // namespace msprobe
