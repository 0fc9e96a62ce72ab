// SPDX-License-Identifier: Apache-2.0
#include "support/options.hpp"

#include <string>
#include <string_view>

#include "support/option_list.hpp"

namespace msprobe {
void declare_global_options(OptionList& options, GlobalOptions& globals) {
  const auto grouped = [](Option option) { option.default_text("").group(kGlobalGroup); };
  grouped(options
              .add("-f,--framework", globals.framework,
                   {{"pytorch", Framework::pytorch}, {"mindspore", Framework::mindspore}},
                   "The framework of the dumps; default: what the dumps say")
              .details("After a command it means the framework only if `pytorch` or `mindspore` "
                       "follows: release 8.1.1 of the Python tool gave -f another meaning there "
                       "(--fuzzy_match; in `acc_check` --filter_api)."));
  grouped(
      options.add_flag("-q,--quiet", globals.quiet, "Show errors only").details("Progress is also hidden."));
  grouped(options.add_flag(
      "-v,--verbose", [&globals](int times) { globals.verbosity += times; },
      "Show threads, arithmetic and timings; twice: also every file that is opened"));
  grouped(options
              .add(
                  "-j,--jobs=N", [&globals](const std::string& jobs) { globals.jobs = std::stoi(jobs); },
                  "Number of threads; 0, the default: all cores, at most 32")
              .details("Results do not depend on the number of threads.")
              .in_range(0, 1024));
  grouped(options
              .add("--progress", globals.progress,
                   {{"auto", ProgressMode::automatic},
                    {"always", ProgressMode::always},
                    {"never", ProgressMode::never}},
                   "Show a progress line on stderr; auto, the default: on a terminal")
              .details("With `auto` it never reaches a pipe or a file."));
  grouped(
      options
          .add("--color", globals.color,
               {{"auto", ColorMode::automatic}, {"always", ColorMode::always}, {"never", ColorMode::never}},
               "Colour the output; auto, the default: on a terminal")
          .details("ENVIRONMENT lists the variables that control `auto`."));
}

void declare_sharing_options(OptionList& options, GlobalOptions& globals, bool local) {
  constexpr int kMost = 1 << 20;
  options
      .add("--dry-run=N", globals.dry_run,
           "Only show the units of work and their distribution over N processes of msprobe-mpi")
      .details(
          "The plan shows their bytes, the largest of them, and how much of the processes' time would be "
          "idle.\n"
          "Nothing is compared and no result is written.")
      .in_range(1, kMost)
      .manual_only();
  if (!local) return;
  options
      .add_flag("--local", globals.local,
                "The dumps are on the local disks of the machines of msprobe-mpi: each process compares "
                "what it sees")
      .details(
          "A pair is compared on a machine that has both sides.\n"
          "Without it all processes must see the same files.")
      .manual_only();
}

bool want_color(ColorMode mode, bool is_terminal,
                const std::function<const char*(const char*)>& environment) {
  if (mode != ColorMode::automatic) return mode == ColorMode::always;
  const auto value = [&](const char* name) {
    const char* text = environment(name);
    return std::string_view(text == nullptr ? "" : text);
  };
  if (!value("NO_COLOR").empty()) return false;
  for (const char* name : {"CLICOLOR_FORCE", "FORCE_COLOR"}) {
    if (const std::string_view text = value(name); !text.empty() && text != "0") return true;
  }
  return is_terminal && !value("TERM").empty() && value("TERM") != "dumb";
}

}  // namespace msprobe
