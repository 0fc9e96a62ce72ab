// SPDX-License-Identifier: Apache-2.0
// Configurations of the training monitor, beside what the Python tool makes of them.
#include "collector/monitor/settings.hpp"

#include <doctest/doctest.h>

#include <set>

#include "series/python_value.hpp"
#include "series/setting_error.hpp"
#include "unit/collector/golden_file.hpp"

namespace msprobe::monitor_settings_test {

using namespace msprobe;
using collector::monitor::Json;
using collector::monitor::Settings;

namespace {

struct Outcome {
  Settings settings;
  std::string raises;
};

template <typename Read>
Outcome outcome_of(Read read) {
  Outcome outcome;
  try {
    outcome.settings = read();
  } catch (const series::SettingError& error) {
    outcome.raises = error.what();
  }
  return outcome;
}

std::vector<std::string> texts_of(const Json& object, const char* key) {
  return object.contains(key) ? object[key].get<std::vector<std::string>>() : std::vector<std::string>();
}

/// Whether our reading is mended: tensorboard is a format, update and ratio are recorded, blanks in sa_order
/// mean nothing.
bool is_mended(const Json& one) {
  const std::string key = one["key"];
  return (key == "format" && one["value"] == "tensorboard") || key == "ur_distribution" ||
         (key == "ndigits" && one["value"].is_null()) || (key == "sa_order" && one["value"] == "b, s, h, d");
}

}  // namespace

TEST_CASE(
    "Every value of every key has the state, the exception or the warning that the Python tool gives it") {
  std::size_t seen = 0;
  for (const Json& one : test::monitor_golden("validation.json")) {
    const std::string key = one["key"];
    CAPTURE(one.dump());
    ++seen;
    const Outcome outcome = outcome_of([&] {
      return collector::monitor::read_settings(Json{{key, one["value"]}});
    });
    if (is_mended(one)) continue;
    CHECK(outcome.raises == one.value("raises", ""));
    CHECK(outcome.settings.warnings == texts_of(one, "log"));
    if (outcome.raises.empty() && one.contains("changes")) {
      for (const auto& [name, value] : one["changes"].items()) {
        const Json& known = outcome.settings.effective[name == "module_rank_list" ? "module_ranks" : name];
        // Any true value of an unchecked key counts.
        CHECK((known == value || (known == true && series::python_truth_of(value))));
      }
    }
    if (one.contains("alert_rules")) {
      REQUIRE(outcome.settings.rules.size() == one["alert_rules"].size());
      for (std::size_t i = 0; i < outcome.settings.rules.size(); ++i) {
        CHECK(outcome.settings.rules[i].name() == one["alert_rules"][i][0].get<std::string>());
        CHECK(outcome.settings.rules[i].threshold.has_value() == !one["alert_rules"][i][1].is_null());
      }
    }
  }
  CHECK(seen > 140);
}

TEST_CASE("Mended keys of the configuration") {
  const Settings events = collector::monitor::read_settings(Json{{"format", "tensorboard"}});
  CHECK(events.format == collector::monitor::FileFormat::tensorboard);
  CHECK(events.warnings.empty());
  CHECK(collector::monitor::read_settings(Json{{"ur_distribution", true}}).effective["ur_distribution"] ==
        true);
  CHECK(collector::monitor::read_settings(Json{{"sa_order", "b, s, h, d"}}).effective["sa_order"] ==
        "b,s,h,d");
  CHECK(collector::monitor::read_settings(Json{{"ndigits", nullptr}}).digits == 6);
}

TEST_CASE("Configurations of layout 2 are read as the Python tool reads them") {
  for (const Json& one : test::monitor_golden("validation_v2.json")) {
    CAPTURE(one.dump());
    // A folder that is missing is made.
    if (one["config"].contains("output_dir") && one["config"]["output_dir"].is_string()) continue;
    const Outcome outcome =
        outcome_of([&] { return collector::monitor::read_settings_v2(one["config"], ""); });
    CHECK(outcome.raises == one.value("raises", ""));
    CHECK(outcome.settings.warnings == texts_of(one, "log"));
    if (!outcome.raises.empty() || one.contains("raises")) continue;
    const Settings& settings = outcome.settings;
    CHECK(settings.effective["framework"] == one["framework"]);
    CHECK(settings.window.start == one["window"][0]);
    CHECK(settings.window.stop == one["window"][1]);
    CHECK(settings.window.interval == one["window"][2]);
    CHECK(settings.window.times == one["window"][3]);
    CHECK(settings.steps_per_file == one["per_file"]);
    CHECK(settings.ranks.size() == one["ranks"].size());
    Json parts = Json::object();
    for (const collector::monitor::MonitorPart& part : settings.parts)
      parts[part.name] = settings.effective["monitors"][part.name]["ops"];
    CHECK(parts == one["monitors"]);
  }
}

TEST_CASE("A text that is no configuration is refused with its name") {
  for (const char* text : {"", "[1]", "{\"ops\": [", "nul", "{\"a\": \"\xff\"}"}) {
    CHECK_THROWS_WITH_AS(collector::monitor::parse_configuration(text, "config.json"),
                         doctest::Contains("config.json"), FormatError);
  }
  const std::string deep = "{\"targets\": " + std::string(1000, '[') + std::string(1000, ']') + "}";
  CHECK_THROWS_AS(collector::monitor::parse_configuration(deep, "config.json"), FormatError);
}

}  // namespace msprobe::monitor_settings_test
