// SPDX-License-Identifier: Apache-2.0
#include "support/stage.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include <cstdint>
#include <exception>
#include <new>
#include <utility>

#include "support/log.hpp"
#include "support/text.hpp"

namespace msprobe {
namespace {

double seconds_since(std::chrono::steady_clock::time_point begun) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

}  // namespace

Stage::Stage(std::string name)
    : name_(log_level() >= LogLevel::verbose ? std::move(name) : std::string()),
      exceptions_(std::uncaught_exceptions()),
      begun_(std::chrono::steady_clock::now()) {}

Stage::~Stage() {
  if (name_.empty() || std::uncaught_exceptions() > exceptions_) return;
  try {
    log_verbose(fmt::format("{:8.3f} s  {}", seconds_since(begun_), display(name_)));
  } catch (const std::bad_alloc&) {
    // The work itself reports the lack of memory.
  }
}

std::string usage_line(std::chrono::steady_clock::time_point begun) {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return fmt::format("{:8.3f} s  in all; {:.3f} s of processor time, peak memory {}", seconds_since(begun),
                     seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime),
                     human_bytes(static_cast<std::uint64_t>(usage.ru_maxrss) * 1024));
}

}  // namespace msprobe
