// SPDX-License-Identifier: Apache-2.0
#include "collector/monitor/folder.hpp"

#include <array>
#include <charconv>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <random>
#include <string_view>
#include <system_error>

#include "series/setting_error.hpp"
#include "support/text.hpp"

namespace msprobe::collector::monitor {
namespace {

constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
constexpr std::time_t kEightHours = std::time_t{8} * 3600;
constexpr std::size_t kTimeSize = 14;  // Jan01_00-00-00

std::string time_tag() {
  const std::time_t now = std::time(nullptr) + kEightHours;
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%d_%H-%M-%S", &parts);
  return std::string(kMonths.substr(3 * static_cast<std::size_t>(parts.tm_mon), 3)) + text.data();
}

/// A number that grows with the time within a year; such tags contain no year.
std::optional<std::int64_t> time_of(std::string_view tag) {
  if (tag.size() != kTimeSize || tag[5] != '_' || tag[8] != '-' || tag[11] != '-') return std::nullopt;
  const std::size_t month = kMonths.find(tag.substr(0, 3));
  if (month == std::string_view::npos || month % 3 != 0) return std::nullopt;
  std::int64_t time = static_cast<std::int64_t>(month / 3);
  for (const std::size_t at : {3, 6, 9, 12}) {
    int part = 0;
    const auto [end, error] = std::from_chars(tag.data() + at, tag.data() + at + 2, part);
    if (error != std::errc() || end != tag.data() + at + 2) return std::nullopt;
    time = time * 100 + part;
  }
  return time;
}

std::int64_t needed_time(const std::string& tag) {
  const std::optional<std::int64_t> time = time_of(tag);
  if (time) return *time;
  throw series::SettingError("ValueError", "append_output: " + python_repr(std::string_view(tag)) +
                                               " is not a time such as 'Jan01_00-00-00'");
}

}  // namespace

std::string new_rank_folder(const std::string& base, std::int64_t rank) {
  std::array<char, 16> digits{};
  std::snprintf(digits.data(), digits.size(), "%08x", static_cast<unsigned>(std::random_device()()));
  return base + "/" + time_tag() + "-rank" + std::to_string(rank) + "-" + digits.data();
}

std::optional<std::string> existing_rank_folder(const std::string& base, std::int64_t rank,
                                                const std::pair<std::string, std::string>& times) {
  const std::int64_t first = needed_time(times.first);
  const std::int64_t last = needed_time(times.second);
  const std::string middle = "-rank" + std::to_string(rank) + "-";
  std::string newest;
  std::int64_t newest_time = -1;
  std::error_code error;
  for (std::filesystem::directory_iterator at(base, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (name.size() < kTimeSize || name.compare(kTimeSize, middle.size(), middle) != 0) continue;
    const std::optional<std::int64_t> time = time_of(std::string_view(name).substr(0, kTimeSize));
    if (!time || *time < first || *time > last || !at->is_directory(error)) continue;
    if (std::pair(*time, name) > std::pair(newest_time, newest)) {
      newest_time = *time;
      newest = name;
    }
  }
  if (newest.empty()) return std::nullopt;
  return base + "/" + newest;
}

}  // namespace msprobe::collector::monitor
