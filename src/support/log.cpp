// SPDX-License-Identifier: Apache-2.0
#include "support/log.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <mutex>
#include <utility>

namespace msprobe {
namespace {

std::atomic<LogLevel> g_level{LogLevel::normal};
std::atomic<bool> g_muted{false};
std::mutex g_mutex;
std::function<void()> g_preamble;

/// Writes a line with one system call, so that lines of several processes do not mix, and without allocating
/// memory: the line may report that no memory is left.
void write_line(std::string_view prefix, std::string_view message) {
  if (message.ends_with('\n')) message.remove_suffix(1);
  const std::lock_guard lock(g_mutex);
  if (g_preamble) g_preamble();
  const auto part = [](std::string_view text) { return iovec{const_cast<char*>(text.data()), text.size()}; };
  std::array<iovec, 3> parts = {part(prefix), part(message), part("\n")};
  for (auto* next = parts.begin(); next != parts.end();) {
    const ssize_t written = ::writev(STDERR_FILENO, next, static_cast<int>(parts.end() - next));
    if (written < 0 && errno != EINTR) return;
    std::size_t gone = written < 0 ? 0 : static_cast<std::size_t>(written);
    for (; next != parts.end() && gone >= next->iov_len; ++next) gone -= next->iov_len;
    if (next == parts.end()) return;
    next->iov_base = static_cast<char*>(next->iov_base) + gone;
    next->iov_len -= gone;
  }
}

}  // namespace

void set_log_level(LogLevel level) {
  g_level = level;
}
LogLevel log_level() {
  return g_muted ? LogLevel::quiet : g_level.load();
}

void mute_log(bool muted) {
  g_muted = muted;
}

void log_error(std::string_view message) {
  write_line("msprobe: error: ", message);
}

void log_hint(std::string_view message) {
  write_line("msprobe: hint: ", message);
}

void log_warning(std::string_view message) {
  if (log_level() >= LogLevel::normal) write_line("msprobe: warning: ", message);
}

void log_info(std::string_view message) {
  if (log_level() >= LogLevel::normal) write_line("", message);
}

void log_verbose(std::string_view message) {
  if (log_level() >= LogLevel::verbose) write_line("", message);
}

void set_log_preamble(std::function<void()> preamble) {
  const std::lock_guard lock(g_mutex);
  g_preamble = std::move(preamble);
}

void with_log_lock(const std::function<void()>& body) {
  const std::lock_guard lock(g_mutex);
  body();
}

}  // namespace msprobe
