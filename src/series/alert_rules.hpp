// SPDX-License-Identifier: Apache-2.0
// The rules that detect changes in a series of a monitor: the same during training and over files.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "series/python_value.hpp"

namespace msprobe::series {

enum class RuleKind : std::uint8_t {
  turbulence,  // larger than the history by a factor
  nan,         // not a number, or larger than allowed
};

struct AlertRule {
  RuleKind kind = RuleKind::nan;
  std::optional<double> threshold;

  std::string_view name() const { return kind == RuleKind::nan ? "AnomalyNan" : "AnomalyTurbulence"; }
};

/// The running mean of the magnitudes of one series: starts with the first value that is not 0, then takes
/// 0.99 of the old mean and 0.01 of the new value. Ignores values that are not finite.
class RunningMean {
 public:
  void add(double value);
  /// NaN before the first value, 0 while all values were 0.
  double value() const { return mean_; }

 private:
  double mean_ = std::numeric_limits<double>::quiet_NaN();
};

/// The first of the rules that `value` of `statistic` breaks; `mean` is that of earlier values.
const AlertRule* first_broken(const std::vector<AlertRule>& rules, std::string_view statistic, double value,
                              const RunningMean& mean);

/// True if any rule judges the value. A rule of turbulence judges neither NaN nor a value without an earlier
/// mean. A rule of NaN without a threshold accepts every infinity and every count of NaN elements.
bool speaks_of(const std::vector<AlertRule>& rules, std::string_view statistic, double value,
               const RunningMean& mean);

/// "Rule AnomalyNan reports anomaly signal in ('tag', 'norm') at step 3, current value nan, history mean
/// 0.5."
std::string alert_message(const AlertRule& rule, std::string_view tag, std::string_view statistic,
                          std::uint64_t step, std::string_view value, double mean);

/// Reads the value of `rules`. Leaves out rules that cannot be used, with a text in `warnings`. Throws
/// SettingError for other errors.
std::vector<AlertRule> read_alert_rules(const Json& rules, std::vector<std::string>& warnings);

}  // namespace msprobe::series
