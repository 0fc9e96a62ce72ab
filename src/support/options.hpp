// SPDX-License-Identifier: Apache-2.0
// The options that every command shares.
#pragma once

#include <cstddef>
#include <functional>

#include "support/command.hpp"
#include "support/progress.hpp"

namespace msprobe {

class OptionList;

enum class ColorMode { automatic, always, never };

struct GlobalOptions {
  Framework framework = Framework::unspecified;
  bool quiet = false;
  int verbosity = 0;  // how often -v was given
  int jobs = 0;       // 0: all cores
  ProgressMode progress = ProgressMode::automatic;
  ColorMode color = ColorMode::automatic;
  std::size_t dry_run = 0;  // the number of processes to plan for; 0: run
  bool local = false;       // the processes of a job see different files
};

/// The heading of the shared options in a help text.
inline constexpr const char* kGlobalGroup = "Global options";

/// Declares the shared options on the program or on one command and binds them to `globals`. They are
/// declared on both, so that they work before and after the command; the later one counts, and -v adds up.
void declare_global_options(OptionList& options, GlobalOptions& globals);

/// The options of commands whose units of work other processes may take over (support/team.hpp). `local`:
/// also with files that not all processes see.
void declare_sharing_options(OptionList& options, GlobalOptions& globals, bool local);

/// True if stderr should be coloured. --color decides first; then NO_COLOR (set, not empty) means no; then
/// CLICOLOR_FORCE or FORCE_COLOR (set, not empty, not 0) means yes; otherwise a terminal whose TERM is not
/// "dumb" means yes.
bool want_color(ColorMode mode, bool is_terminal, const std::function<const char*(const char*)>& environment);

}  // namespace msprobe
