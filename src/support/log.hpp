// SPDX-License-Identifier: Apache-2.0
// Messages to people: always stderr, whole lines, one at a time, never mixed with a progress line.
#pragma once

#include <functional>
#include <string_view>

namespace msprobe {

enum class LogLevel { quiet, normal, verbose, debug };

void set_log_level(LogLevel level);
LogLevel log_level();

/// Shows errors only, at any level, because another process informs the user.
void mute_log(bool muted);

/// `msprobe: error: …`, shown at every level.
void log_error(std::string_view message);
/// `msprobe: hint: …`, a remedy for the error before it, shown at every level.
void log_hint(std::string_view message);
/// `msprobe: warning: …`, hidden by --quiet.
void log_warning(std::string_view message);
/// A plain line, hidden by --quiet.
void log_info(std::string_view message);
/// A plain line, shown from --verbose on.
void log_verbose(std::string_view message);

/// Sets a function that is called (under the log's lock) before a line is written, so that a progress line
/// can clear itself. May be empty.
void set_log_preamble(std::function<void()> preamble);

/// Runs `body` under the log's lock, so that its output to stderr never comes between a preamble and its
/// line. The body must not log.
void with_log_lock(const std::function<void()>& body);

}  // namespace msprobe
