// SPDX-License-Identifier: Apache-2.0
// The part that the readers of both layouts' configurations share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "collector/monitor/settings.hpp"

namespace msprobe::collector::monitor {

class SettingsReader {
 protected:
  SettingsReader(const Json& configuration, int layout);

  Json get(const char* key, const Json& fallback) const;
  /// Reads a whole number; a wrong one gives a warning and its default, which the warning spells as `shown`.
  std::uint64_t at_least(const char* key, std::int64_t least, std::uint64_t fallback,
                         const std::string& shown);
  /// Reads the steps that are collected, except the last one. `default_times`: as a warning spells it.
  void read_window(std::int64_t least_times, const std::string& default_times);

  const Json& configuration_;
  Settings settings_;
};

/// The elements of a list of ranks. Throws SettingError (TypeError) if one is no whole number.
std::vector<std::int64_t> rank_list(const Json& list);
/// The names of statistics, as a list.
Json names_of(const std::vector<MonitorStatistic>& statistics);

}  // namespace msprobe::collector::monitor
