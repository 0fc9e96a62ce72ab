// SPDX-License-Identifier: Apache-2.0
#include "support/options.hpp"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "support/ascii.hpp"
#include "support/option_list.hpp"

namespace msprobe {
namespace {

/// Nothing, or the number of threads that `text` is.
std::optional<int> to_jobs(const std::string& text) {
  const auto jobs = whole_number<int>(text);
  return jobs && *jobs >= 0 && *jobs <= 1024 ? jobs : std::nullopt;
}

}  // namespace

void declare_global_options(OptionList& options, GlobalOptions& globals) {
  const std::vector<std::string> tri_state = {"auto", "always", "never"};
  options
      .add(
          "-f,--framework",
          [&globals](const std::string& name) {
            globals.framework = name == "pytorch" ? Framework::pytorch : Framework::mindspore;
          },
          "The framework of the dumps; default: what the dumps say")
      .one_of({"pytorch", "mindspore"})
      .group(kGlobalGroup);
  options
      .add_flag(
          "-q,--quiet", [&globals](int) { globals.quiet = true; }, "Show errors only")
      .group(kGlobalGroup);
  options
      .add_flag(
          "-v,--verbose", [&globals](int times) { globals.verbosity += times; },
          "Show threads, arithmetic and the times of what is done; twice: every file that is opened, too")
      .group(kGlobalGroup);
  // The parser's own wording for what is no number changes with its version.
  options
      .add(
          "-j,--jobs", [&globals](const std::string& jobs) { globals.jobs = to_jobs(jobs).value(); },
          "Number of threads; 0, the default: all cores, at most 32")
      .argument("N")
      .check([](const std::string& jobs) {
        return to_jobs(jobs) ? std::string() : fmt::format("'{}' is not a number from 0 to 1024", jobs);
      })
      .group(kGlobalGroup);
  options
      .add(
          "--progress",
          [&globals](const std::string& when) {
            globals.progress = when == "always"  ? ProgressMode::always
                               : when == "never" ? ProgressMode::never
                                                 : ProgressMode::automatic;
          },
          "Show a progress line on stderr; auto, the default: on a terminal")
      .one_of(tri_state)
      .group(kGlobalGroup);
  options
      .add(
          "--color",
          [&globals](const std::string& when) {
            globals.color = when == "always"  ? ColorMode::always
                            : when == "never" ? ColorMode::never
                                              : ColorMode::automatic;
          },
          "Colour what is shown; auto, the default: on a terminal")
      .one_of(tri_state)
      .group(kGlobalGroup);
}

void declare_sharing_options(OptionList& options, GlobalOptions& globals, bool local) {
  constexpr int kMost = 1 << 20;
  options
      .add("--dry-run", globals.dry_run,
           "Only show the units of work and how they would spread over N processes of msprobe-mpi")
      .in_range(1, kMost)
      .argument("N");
  if (!local) return;
  options.add_flag(
      "--local", globals.local,
      "The dumps lie on the own disks of the machines that msprobe-mpi runs on: each process takes "
      "what it sees");
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
