// SPDX-License-Identifier: Apache-2.0
// The spellings of the Python tool that the parser does not know.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "support/command_line.hpp"

namespace msprobe {

/// The name by which the parser knows a command: it takes no blanks.
std::string parser_name(std::string_view command);

struct Rewritten {
  std::vector<std::string> words;
  std::string group;  // the first word of commands' names, where no second one follows
};

/// The words after the program's name as the parser can read them: `-tp X` and `-tp=X` become the long form,
/// `-o=X` too, `--target-path` becomes `--target_path` (and the other way round), and a `-f` after the
/// command that no framework follows becomes --fuzzy_match as the 8.1.1 command line had it. Throws
/// UsageError for an unknown option or command, for a value where none belongs and for a missing one.
Rewritten rewrite_arguments(const std::vector<std::string>& arguments, const ProgramInfo& program);

}  // namespace msprobe
