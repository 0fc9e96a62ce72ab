// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "monitor/alerts/replay.hpp"
#include "series/setting_error.hpp"
#include "support/byte_source.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::monitor {
namespace {

using series::Json;

constexpr std::uint64_t kMostConfiguration = std::uint64_t{10} << 20;

Json parse_configuration(const std::string& path) {
  constexpr int kMostDepth = 64;
  bool deep = false;
  const auto shallow = [&](int depth, Json::parse_event_t /*event*/, Json& /*value*/) {
    deep |= depth > kMostDepth;
    return !deep;
  };
  Json json = Json::parse(read_all(*open_file(path), kMostConfiguration), shallow, false);
  if (deep || json.is_discarded() || !json.is_object())
    throw FormatError(display(path), "is not a configuration of a monitor: not a JSON object");
  return json;
}

}  // namespace

std::vector<series::AlertRule> read_rules_file(const std::string& path, std::vector<std::string>& warnings) {
  const Json json = parse_configuration(path);
  const auto alert = json.find("alert");
  const auto rules = alert == json.end() || !alert->is_object() ? json.end() : alert->find("rules");
  if (alert == json.end() || !alert->is_object() || rules == alert->end())
    throw FormatError(display(path), "has no alert rules (\"alert\": {\"rules\": [...]})");
  try {
    std::vector<series::AlertRule> read = series::read_alert_rules(*rules, warnings);
    if (read.empty()) throw FormatError(display(path), "has no usable alert rule");
    return read;
  } catch (const series::SettingError& error) {
    throw FormatError(display(path), display(error.what()));
  }
}

std::vector<series::AlertRule> parse_rules(const std::vector<std::string>& words) {
  std::vector<series::AlertRule> rules;
  for (const std::string& word : words) {
    const std::size_t colon = word.find(':');
    const std::string name = word.substr(0, colon);
    series::AlertRule rule;
    if (name == "AnomalyTurbulence") {
      rule.kind = series::RuleKind::turbulence;
    } else if (name != "AnomalyNan") {
      throw UsageError("--rule: '" + display(name) + "' must be AnomalyTurbulence or AnomalyNan");
    }
    if (colon != std::string::npos) {
      rule.threshold = parse_number(word.substr(colon + 1));
      if (!rule.threshold || !(*rule.threshold >= 0))
        throw UsageError("--rule: '" + display(word) + "' needs a threshold of 0 or more after its colon");
    } else if (rule.kind == series::RuleKind::turbulence) {
      throw UsageError("--rule: AnomalyTurbulence needs a threshold, such as AnomalyTurbulence:0.5");
    }
    rules.push_back(rule);
  }
  return rules;
}

}  // namespace msprobe::monitor
