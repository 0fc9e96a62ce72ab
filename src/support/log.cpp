// SPDX-License-Identifier: Apache-2.0
#include "support/log.hpp"

#include <atomic>
#include <cstdio>
#include <mutex>
#include <string>
#include <utility>

namespace msprobe {
namespace {

std::atomic<LogLevel> g_level{LogLevel::normal};
std::mutex g_mutex;
std::function<void()> g_preamble;

void write_line(std::string_view prefix, std::string_view message) {
  std::string line(prefix);
  line += message;
  line += '\n';
  const std::lock_guard lock(g_mutex);
  if (g_preamble) g_preamble();
  std::fwrite(line.data(), 1, line.size(), stderr);
}

}  // namespace

void set_log_level(LogLevel level) {
  g_level = level;
}
LogLevel log_level() {
  return g_level;
}

void log_error(std::string_view message) {
  write_line("msprobe: error: ", message);
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
