// SPDX-License-Identifier: Apache-2.0
#include "series/alert_rules.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <vector>

#include "series/setting_error.hpp"

using namespace msprobe::series;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

const AlertRule kTurbulence{RuleKind::turbulence, 0.5};
const AlertRule kNanRule{RuleKind::nan, std::nullopt};

bool fires(const std::vector<AlertRule>& rules, double value, const RunningMean& mean,
           const char* statistic = "norm") {
  return first_broken(rules, statistic, value, mean) != nullptr;
}

}  // namespace

TEST_CASE("The history is a running mean of magnitudes that values which are not finite leave alone") {
  RunningMean mean;
  CHECK(std::isnan(mean.value()));
  mean.add(kNan);
  CHECK(std::isnan(mean.value()));
  double expected = 2;
  mean.add(-2);
  for (int i = 1; i < 100; ++i) {
    const double value = i % 2 == 0 ? i : -i;
    mean.add(value);
    if (i % 7 == 0) mean.add(i % 2 == 0 ? kNan : kInfinity);
    expected = 0.99 * expected + 0.01 * i;
  }
  CHECK(mean.value() == doctest::Approx(expected).epsilon(1e-12));
}

TEST_CASE("Turbulence is a norm or a mean beyond its history; extrema swallow no other rule") {
  RunningMean mean;
  CHECK_FALSE(fires({kTurbulence}, 1e9, mean));  // no history
  mean.add(10);
  CHECK_FALSE(fires({kTurbulence}, 15, mean));
  CHECK(fires({kTurbulence}, 15.001, mean));
  CHECK(fires({kTurbulence}, -15.001, mean, "mean"));
  CHECK(fires({kTurbulence}, kInfinity, mean));
  CHECK_FALSE(fires({kTurbulence}, 100, mean, "max"));
  CHECK_FALSE(fires({kTurbulence}, kNan, mean));
  const std::vector<AlertRule> rules = {kTurbulence, {RuleKind::nan, 50.0}};
  const AlertRule* rule = first_broken(rules, "max", 100, mean);
  REQUIRE(rule != nullptr);
  CHECK(rule->name() == "AnomalyNan");
  // One NaN does not silence a series for good.
  mean.add(kNan);
  CHECK(fires({kTurbulence}, 16, mean));
}

TEST_CASE("A series that begins with 0 has no scale before its first other value") {
  RunningMean mean;
  mean.add(0);
  CHECK(mean.value() == 0);
  CHECK_FALSE(fires({kTurbulence}, 1e-3, mean));
  CHECK(fires({kTurbulence}, kInfinity, mean));
  mean.add(0);
  mean.add(2);
  CHECK(mean.value() == 2);
  CHECK_FALSE(fires({kTurbulence}, 3, mean));
  CHECK(fires({kTurbulence}, 3.01, mean));
}

TEST_CASE("NaN is an alert; infinity only with a threshold") {
  const RunningMean none;
  CHECK(fires({kNanRule}, kNan, none, "min"));
  CHECK_FALSE(fires({kNanRule}, kInfinity, none));
  CHECK(fires({{RuleKind::nan, 5.0}}, -kInfinity, none));
  CHECK_FALSE(fires({{RuleKind::nan, 5.0}}, 5, none));
}

TEST_CASE("An alert says what it is of") {
  CHECK(alert_message(kTurbulence, "0:0.input:0/rank0/actv", "norm", 4, "110.07", 1.25) ==
        "Rule AnomalyTurbulence reports anomaly signal in ('0:0.input:0/rank0/actv', 'norm') at step 4, "
        "current value "
        "110.07, history mean 1.25.");
}

TEST_CASE("Rules of a wrong form") {
  std::vector<std::string> warnings;
  CHECK_THROWS_WITH_AS(
      read_alert_rules(Json::parse(R"([{"rule_name": "AnomalyNan", "args": {"threshold": -1}}])"), warnings),
      "TypeError: threshold must be float and not less than 0", SettingError);
  CHECK_THROWS_AS(read_alert_rules(Json::parse(R"([{"rule_name": "AnomalyNan", "args": [1]}])"), warnings),
                  SettingError);
  CHECK_THROWS_AS(read_alert_rules(Json::parse("[1]"), warnings), SettingError);
  CHECK_THROWS_AS(read_alert_rules(Json::parse("5"), warnings), SettingError);
  CHECK(warnings.empty());
}
