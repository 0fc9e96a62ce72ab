// SPDX-License-Identifier: Apache-2.0
// The rules that tell when a series of a monitor is not as it was: the same while training and over files.
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

/// The running mean of the magnitudes of one series: the first value that is not 0, then 0.99 of the old and
/// 0.01 of the new. Values that are not finite leave it alone.
class RunningMean {
 public:
  void add(double value);
  /// NaN while there is none, 0 while all were.
  double value() const { return mean_; }

 private:
  double mean_ = std::numeric_limits<double>::quiet_NaN();
};

/// The first of the rules that `value` of `statistic` breaks; `mean` is that of the values before it.
const AlertRule* first_broken(const std::vector<AlertRule>& rules, std::string_view statistic, double value,
                              const RunningMean& mean);

/// Does any of them judge it? A value that is NaN breaks no rule of turbulence, nor does one without a mean
/// before. A rule of NaN without a threshold lets every infinity pass, and every count of NaN elements.
bool speaks_of(const std::vector<AlertRule>& rules, std::string_view statistic, double value,
               const RunningMean& mean);

/// "Rule AnomalyNan reports anomaly signal in ('tag', 'norm') at step 3, current value nan, history mean
/// 0.5."
std::string alert_message(const AlertRule& rule, std::string_view tag, std::string_view statistic,
                          std::uint64_t step, std::string_view value, double mean);

/// The value of `rules`. Those that cannot be used are left out with a text in `warnings`. SettingError
/// otherwise.
std::vector<AlertRule> read_alert_rules(const Json& rules, std::vector<std::string>& warnings);

}  // namespace msprobe::series
