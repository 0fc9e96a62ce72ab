// SPDX-License-Identifier: Apache-2.0
// Answers the shells' completion scripts, and describes all options as JSON.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/command_line.hpp"

namespace msprobe {

enum class Shell { bash, zsh, fish };
std::optional<Shell> shell_from_name(std::string_view name);

/// The candidates for the last of `words`, one per line. `words` are those after the program's name up to the
/// cursor; the last one may be empty. For fish an explanation follows after a tab, for zsh after a colon. The
/// single line `:files` or `:dirs` asks the script to complete names of files.
std::string complete(const ProgramInfo& info, Shell shell, std::vector<std::string> words);

/// Every command with its options as JSON, for tools and for the test that documents and options agree.
std::string options_json(const ProgramInfo& info);

}  // namespace msprobe
