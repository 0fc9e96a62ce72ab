// SPDX-License-Identifier: Apache-2.0
#include "collector/monitor/checks.hpp"

#include <nlohmann/json.hpp>

#include "series/setting_error.hpp"

namespace msprobe::collector::monitor {

std::uint64_t NumberChecks::at_least(const char* key, std::int64_t least, std::uint64_t fallback,
                                     const std::string& shown) {
  const auto value = object_.find(key);
  if (value == object_.end() || value->is_null()) return fallback;
  const auto refuse = [&](const std::string& reason) {
    warnings_.push_back("Validate " + std::string(key) + " failed, " + key + " " + reason +
                        ", replaced with default value " + shown + ".");
    return fallback;
  };
  if (!value->is_number_integer()) return refuse("must be int");
  if (*value < least) return refuse("must greater than " + std::to_string(least));
  return value->get<std::uint64_t>();
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

}  // namespace msprobe::collector::monitor
