// SPDX-License-Identifier: Apache-2.0
// Rewrites the spellings of the Python tool that the parser does not know.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "support/command_line.hpp"

namespace msprobe {

/// The name that the parser uses for a command: it contains no blanks.
std::string parser_name(std::string_view command);

struct RewrittenArguments {
  std::vector<std::string> words;
  std::string group;  // the first word of commands' names, if no second one follows
};

/// The words after the program's name in a form that the parser reads: `-tp X`, `-tp=X` and `-o=X` become the
/// long form, `--target-path` becomes `--target_path` (and the other way round), and a `-f` after the command
/// without a framework becomes --fuzzy_match, as in the 8.1.1 command line. Throws UsageError for an unknown
/// option or command, for a value where none is allowed, and for a missing value.
RewrittenArguments rewrite_arguments(const std::vector<std::string>& arguments, const ProgramInfo& program);

}  // namespace msprobe
