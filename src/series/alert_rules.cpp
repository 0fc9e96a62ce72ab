// SPDX-License-Identifier: Apache-2.0
#include "series/alert_rules.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "series/setting_error.hpp"
#include "support/text.hpp"

namespace msprobe::series {
namespace {

constexpr double kKept = 0.99;
constexpr double kTaken = 0.01;

/// Extrema jump even in a healthy training, so this rule is not for them.
bool has_turbulence(std::string_view statistic) {
  return statistic == "norm" || statistic == "mean";
}

bool breaks(const AlertRule& rule, std::string_view statistic, double value, double mean) {
  if (rule.kind == RuleKind::nan)
    return std::isnan(value) || (rule.threshold && std::abs(value) > *rule.threshold);
  if (!has_turbulence(statistic)) return false;
  // Without a mean (NaN), or while all values are 0, there is no scale yet.
  return (mean > 0 || std::isinf(value)) && std::abs(value) > mean * (1 + rule.threshold.value_or(0));
}

std::optional<RuleKind> kind_of(const Json& spec) {
  const auto name = spec.find("rule_name");
  if (name == spec.end() || name->is_null()) return std::nullopt;
  if (*name == "AnomalyTurbulence") return RuleKind::turbulence;
  if (*name == "AnomalyNan") return RuleKind::nan;
  throw SettingError("TypeError", python_str_of(*name) + " is not supported");
}

std::string creation_failed(const AlertRule& rule, const std::string& reason) {
  const std::string name(rule.name());
  return "Error creating instance of rule '" + name + "': " + name + ".__init__() " + reason;
}

/// Returns nothing if the rule cannot be used.
std::optional<AlertRule> read_rule(const Json& spec, std::vector<std::string>& warnings) {
  if (!spec.is_object()) {
    throw SettingError("AttributeError",
                       "'" + std::string(python_type_of(spec)) + "' object has no attribute 'get'");
  }
  const std::optional<RuleKind> kind = kind_of(spec);
  const auto arguments = spec.find("args");
  const bool has_arguments = arguments != spec.end() && !arguments->is_null();
  if (has_arguments && !arguments->is_object())
    throw SettingError("TypeError", "args of a rule should be a dictionary");
  AlertRule rule;
  rule.kind = kind.value_or(RuleKind::nan);
  if (has_arguments) {
    if (const auto threshold = arguments->find("threshold");
        threshold != arguments->end() && !threshold->is_null()) {
      if (!threshold->is_number() || threshold->get<double>() < 0)
        throw SettingError("TypeError", "threshold must be float and not less than 0");
      rule.threshold = threshold->get<double>();
    }
  }
  if (!kind || (*kind == RuleKind::turbulence && !has_arguments)) {
    warnings.push_back("Spec is missing required keys: " + python_repr_of(spec));
    return std::nullopt;
  }
  if (has_arguments) {
    for (const auto& [key, value] : arguments->items()) {
      if (key == "threshold") continue;
      warnings.push_back(creation_failed(rule, "got an unexpected keyword argument '" + key + "'"));
      return std::nullopt;
    }
  }
  if (rule.kind == RuleKind::turbulence && !rule.threshold) {
    warnings.push_back(creation_failed(rule, "missing 1 required positional argument: 'threshold'"));
    return std::nullopt;
  }
  return rule;
}

}  // namespace

void RunningMean::add(double value) {
  if (!std::isfinite(value)) return;
  mean_ = mean_ > 0 ? kKept * mean_ + kTaken * std::abs(value) : std::abs(value);
}

const AlertRule* first_broken(const std::vector<AlertRule>& rules, std::string_view statistic, double value,
                              const RunningMean& mean) {
  for (const AlertRule& rule : rules) {
    if (breaks(rule, statistic, value, mean.value())) return &rule;
  }
  return nullptr;
}

bool speaks_of(const std::vector<AlertRule>& rules, std::string_view statistic, double value,
               const RunningMean& mean) {
  const bool by_history = has_turbulence(statistic) && !std::isnan(value) && !std::isnan(mean.value());
  return std::any_of(rules.begin(), rules.end(), [&](const AlertRule& rule) {
    if (rule.kind == RuleKind::turbulence) return by_history;
    return statistic != "nans" && (rule.threshold || !std::isinf(value));
  });
}

std::string alert_message(const AlertRule& rule, std::string_view tag, std::string_view statistic,
                          std::uint64_t step, std::string_view value, double mean) {
  std::string text = "Rule ";
  text += rule.name();
  text += " reports anomaly signal in (";
  text += python_repr(tag);
  text += ", '";
  text += statistic;
  text += "') at step " + std::to_string(step) + ", current value ";
  text += value;
  return text + ", history mean " + python_repr(mean) + ".";
}

std::vector<AlertRule> read_alert_rules(const Json& rules, std::vector<std::string>& warnings) {
  std::vector<AlertRule> result;
  if (rules.is_null()) return result;
  if (rules.is_string() && !rules.get_ref<const std::string&>().empty())
    throw SettingError("AttributeError", "'str' object has no attribute 'get'");
  if (!rules.is_array()) throw SettingError("TypeError", "rules of alert should be a list");
  for (const Json& spec : rules) {
    if (const std::optional<AlertRule> rule = read_rule(spec, warnings)) result.push_back(*rule);
  }
  return result;
}

}  // namespace msprobe::series
