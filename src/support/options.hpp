// SPDX-License-Identifier: Apache-2.0
// The options that every command shares, and the spellings of the Python tool that the parser does not know.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/command.hpp"
#include "support/progress.hpp"

namespace CLI {
class App;
}

namespace msprobe {

enum class ColorMode { automatic, always, never };

struct GlobalOptions {
  Framework framework = Framework::unspecified;
  bool quiet = false;
  int verbosity = 0;  // how often -v was given
  int jobs = 0;       // 0: all cores
  ProgressMode progress = ProgressMode::automatic;
  ColorMode color = ColorMode::automatic;
};

/// The heading of the shared options in a help text.
inline constexpr const char* kGlobalGroup = "Global options";

/// Declares the shared options on the program or on one command and binds them to `globals`. They are
/// declared on both, so that they work before and after the command; what stands later wins, -v adds up.
void declare_global_options(CLI::App& app, GlobalOptions& globals);

/// Should stderr be coloured? --color decides; then NO_COLOR (set, not empty) says no; then CLICOLOR_FORCE or
/// FORCE_COLOR (set, not empty, not 0) says yes; then it is yes on a terminal whose TERM is not "dumb".
bool want_color(ColorMode mode, bool is_terminal, const std::function<const char*(const char*)>& environment);

/// Multi-letter short options and the long ones they stand for.
using Aliases = std::vector<std::pair<std::string, std::string>>;

/// The words after the program's name as the parser can read them: `-tp X` and `-tp=X` become the long form,
/// `-o=X` too, `--target-path` becomes `--target_path` (and the other way round), and a `-f` after the
/// command that no framework follows becomes --fuzzy_match as the 8.1.1 command line had it. Throws
/// UsageError for an unknown option or command, for a value where none belongs and for a missing one.
std::vector<std::string> rewrite_arguments(const std::vector<std::string>& arguments, const CLI::App& program,
                                           const std::map<std::string, Aliases>& aliases);

}  // namespace msprobe
