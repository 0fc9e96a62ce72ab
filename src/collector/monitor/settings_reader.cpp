// SPDX-License-Identifier: Apache-2.0
#include "collector/monitor/settings_reader.hpp"

#include "series/setting_error.hpp"

namespace msprobe::collector::monitor {

SettingsReader::SettingsReader(const Json& configuration, int layout) : configuration_(configuration) {
  settings_.layout = layout;
  settings_.effective = Json::object();
}

Json SettingsReader::get(const char* key, const Json& fallback) const {
  const auto found = configuration_.find(key);
  return found == configuration_.end() ? fallback : *found;
}

std::uint64_t SettingsReader::at_least(const char* key, std::int64_t least, std::uint64_t fallback,
                                       const std::string& shown) {
  const auto value = configuration_.find(key);
  if (value == configuration_.end() || value->is_null()) return fallback;
  const auto refuse = [&](const std::string& reason) {
    settings_.warnings.push_back("Validate " + std::string(key) + " failed, " + key + " " + reason +
                                 ", replaced with default value " + shown + ".");
    return fallback;
  };
  if (!value->is_number_integer()) return refuse("must be int");
  if (*value < least) return refuse("must greater than " + std::to_string(least));
  return value->get<std::uint64_t>();
}

void SettingsReader::read_window(std::int64_t least_times, const std::string& default_times) {
  Window& window = settings_.window;
  window.start = at_least("start_step", 0, 0, "0");
  window.interval = at_least("step_interval", 1, 1, "1");
  window.times = at_least("collect_times", least_times, window.times, default_times);
  settings_.effective["start_step"] = window.start;
  settings_.effective["step_interval"] = window.interval;
  settings_.effective["collect_times"] = window.times;
}

std::vector<std::int64_t> rank_list(const Json& list) {
  std::vector<std::int64_t> ranks;
  for (const Json& rank : list) {
    if (!rank.is_number_integer()) {
      throw series::SettingError("TypeError", "element in module_ranks should be a int, get <class '" +
                                                  std::string(series::python_type_of(rank)) + "'>");
    }
    ranks.push_back(rank.get<std::int64_t>());
  }
  return ranks;
}

Json names_of(const std::vector<MonitorStatistic>& statistics) {
  Json names = Json::array();
  for (const MonitorStatistic one : statistics) names.push_back(std::string(name_of(one)));
  return names;
}

}  // namespace msprobe::collector::monitor
