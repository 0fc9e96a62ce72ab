// SPDX-License-Identifier: Apache-2.0
#include "collector/monitor/settings.hpp"

#include <algorithm>

#include "collector/config_reader.hpp"
#include "collector/monitor/settings_reader.hpp"
#include "series/python_value.hpp"
#include "series/setting_error.hpp"
#include "support/byte_source.hpp"

namespace msprobe::collector::monitor {

using series::python_repr_of;
using series::python_str_of;
using series::python_truth_of;
using series::SettingError;

namespace {

constexpr std::size_t kMaxConfiguration = std::size_t{16} << 20;
constexpr int kMaxNesting = 64;
constexpr std::int64_t kMaxStepsPerFile = 1'000'000;
constexpr std::int64_t kMaxDigits = 20;

constexpr std::string_view kFeatureHooks[] = {"linear_hook", "attention_hook", "moe_router_weight_hook",
                                              "moe_router_logit_hook"};
constexpr std::string_view kAxisOrders[] = {"s,b,h,d", "b,s,h,d"};

std::string list_of(std::span<const std::string_view> names) {
  Json list = Json::array();
  for (const std::string_view name : names) list.push_back(std::string(name));
  return python_repr_of(list);
}

[[noreturn]] void wrong_type(const std::string& reason) {
  throw SettingError("TypeError", reason);
}

class V1Reader : SettingsReader {
 public:
  explicit V1Reader(const Json& configuration) : SettingsReader(configuration, 1) {}

  Settings read() {
    Json& known = settings_.effective;
    read_targets();
    read_feature_targets();
    set_statistics(settings_, get("ops", Json::array({"norm"})));
    read_numbers();
    read_ranks();
    for (const char* key :
         {"xy_distribution", "wg_distribution", "param_distribution", "ur_distribution", "print_struct",
          "recording_l2_features", "squash_name", "dynamic_on", "mg_distribution"}) {
      known[key] = strict_boolean(key);
    }
    // The Python tool reads these keys without checks: any true value counts.
    for (const char* key :
         {"mv_distribution", "mg_direction", "forward_only", "backward_only", "all_xy", "stack_info"}) {
      known[key] = python_truth_of(get(key, false));
    }
    if (known["xy_distribution"] == true && known["targets"].empty()) known["all_xy"] = true;
    read_micro_batches();
    read_communication();
    read_axis_order();
    read_alerts();
    read_window(0, "100000000.0");
    read_append_output();
    read_format();
    return std::move(settings_);
  }

 private:
  void warn(std::string text) { settings_.warnings.push_back(std::move(text)); }

  bool strict_boolean(const char* key) const {
    const Json value = get(key, false);
    if (!value.is_boolean()) wrong_type(std::string(key) + " should be a bool");
    return value.get<bool>();
  }

  void read_targets() {
    Json targets = get("targets", Json::object());
    if (!targets.is_object()) wrong_type("targets in config.json should be a dict");
    for (const auto& [name, inner] : targets.items()) {
      if (!inner.is_object())
        wrong_type("values of targets should be cared filed e.g. {\"input\": \"tensor\"} in config.json");
    }
    settings_.effective["targets"] = std::move(targets);
  }

  void read_feature_targets() {
    Json targets = get("l2_targets", Json::object());
    if (!targets.is_object()) wrong_type("l2_targets in config.json should be a dict");
    for (const auto& [hook, names] : targets.items()) {
      if (std::find(std::begin(kFeatureHooks), std::end(kFeatureHooks), hook) == std::end(kFeatureHooks))
        wrong_type("key of l2_targtes must be in " + list_of(kFeatureHooks) + ", got " + hook);
      if (!names.is_array()) wrong_type("values of l2_targets should be a list in config.json");
      for (const Json& name : names) {
        if (!name.is_string())
          wrong_type("item of \"" + hook + "\" in l2_targets should be module_name[str] in config.json");
      }
    }
    settings_.effective["l2_targets"] = std::move(targets);
  }

  void read_numbers() {
    const Json eps = get("eps", settings_.eps);
    if (!eps.is_number_float()) wrong_type("eps should be a float");
    settings_.eps = eps.get<double>();
    settings_.effective["eps"] = eps;

    const Json digits = get("ndigits", nullptr);
    if (!digits.is_null()) {
      const std::string text = python_str_of(digits);
      if (!digits.is_number_integer() || digits < 0)
        throw SettingError("ValueError",
                           "ndigits(" + text + ") is not a positive integer, current is: " + text + ".");
      if (digits > kMaxDigits)
        throw SettingError("ValueError", "The maximum supported ndigits is 20, current value: " + text + ".");
      settings_.digits = digits.get<int>();
    }
    settings_.effective["ndigits"] = settings_.digits;

    const Json steps = get("step_count_per_record", 1);
    if (!steps.is_number_integer()) wrong_type("step_count_per_record must be int.");
    if (steps < 1) throw SettingError("ValueError", "step_count_per_record must greater than 0");
    if (steps > kMaxStepsPerFile)
      throw SettingError("ValueError", "step_count_per_record must smaller than 1e6");
    settings_.steps_per_file = steps.get<std::uint64_t>();
    settings_.effective["step_count_per_record"] = steps;
  }

  void read_ranks() {
    const Json ranks = get("module_ranks", Json::array());
    if (!ranks.is_array()) wrong_type("module_ranks should be a list");
    settings_.ranks = rank_list(ranks);
    settings_.effective["module_ranks"] = ranks;
  }

  void read_micro_batches() {
    const Json value = get("monitor_mbs_grad", false);
    if (!value.is_boolean()) {
      warn("monitor_mbs_grad should be a bool, actual value is " + python_str_of(value) + ".");
    } else {
      settings_.each_micro_batch = value.get<bool>();
    }
    settings_.effective["monitor_mbs_grad"] = settings_.each_micro_batch;
  }

  void read_communication() {
    Json value = get("cc_distribution", Json::object());
    if (!value.is_object()) wrong_type("cc_distribution should be a dictionary");
    for (const auto& [key, inner] : value.items()) {
      if (key == "cc_codeline") {
        if (!inner.is_array()) wrong_type("cc_distribution cc_codeline should be a list");
      } else if (key == "enable" || key == "cc_pre_hook" || key == "cc_log_only") {
        if (!inner.is_boolean()) wrong_type("cc_distribution " + key + " should be a bool");
      } else {
        wrong_type(key + " of cc_distribution is not supported.");
      }
    }
    settings_.effective["cc_distribution"] = std::move(value);
  }

  void read_axis_order() {
    const Json value = get("sa_order", std::string(kAxisOrders[0]));
    std::string bare = python_str_of(value);
    std::erase(bare, ' ');
    if (!value.is_string() ||
        std::find(std::begin(kAxisOrders), std::end(kAxisOrders), bare) == std::end(kAxisOrders))
      wrong_type("sa_order must be in " + list_of(kAxisOrders) + ", got " + python_str_of(value));
    settings_.effective["sa_order"] = bare;
  }

  void read_alerts() {
    const Json alert = get("alert", Json{{"rules", Json::array()}});
    if (!alert.is_object()) wrong_type("alert should be a dictionary");
    const auto rules = alert.find("rules");
    if (rules == alert.end()) throw SettingError("KeyError", "'rules'");
    settings_.rules = series::read_alert_rules(*rules, settings_.warnings);
    const auto dump = alert.find("dump");
    if (dump != alert.end()) {
      if (!dump->is_boolean()) wrong_type("dump must be bool.");
      settings_.dump_alerts = dump->get<bool>();
    }
    settings_.effective["alert"] = alert;
  }

  void read_append_output() {
    const Json value = get("append_output", Json::array());
    if (!value.is_array()) wrong_type("append_output should be a list");
    if (!value.empty() && value.size() != 2)
      throw SettingError("ValueError", "append_output should be empty or contain exactly 2 elements");
    if (value.size() == 2) settings_.append_output = {python_str_of(value[0]), python_str_of(value[1])};
    settings_.effective["append_output"] = value;
  }

  void read_format() {
    const Json value = get("format", "csv");
    if (value == "tensorboard") {
      settings_.format = FileFormat::tensorboard;
    } else if (value != "csv") {
      warn("Unsupported format: " + python_str_of(value) + ", use default format: csv");
    }
    settings_.effective["format"] = settings_.format == FileFormat::csv ? "csv" : "tensorboard";
  }
};

}  // namespace

void set_statistics(Settings& settings, const Json& value) {
  if (!value.is_array()) wrong_type("ops should be a list");
  std::vector<MonitorStatistic> found;
  const auto add = [&](MonitorStatistic one) {
    if (std::find(found.begin(), found.end(), one) == found.end()) found.push_back(one);
  };
  for (const Json& name : value) {
    const std::string text = python_str_of(name);
    const auto* const known = std::find(series::kStatisticNames.begin(), series::kStatisticNames.end(), text);
    if (!name.is_string() || known == series::kStatisticNames.end()) {
      settings.warnings.push_back("op " + text +
                                  " is not supported. Optional ops: " + list_of(series::kStatisticNames));
    } else {
      add(static_cast<MonitorStatistic>(known - series::kStatisticNames.begin()));
    }
  }
  if (found.empty()) found.push_back(MonitorStatistic::norm);
  add(MonitorStatistic::shape);
  add(MonitorStatistic::dtype);
  settings.effective["ops"] = names_of(found);
  settings.statistics = std::move(found);
}

Json parse_configuration(std::string_view text, const std::string& name) {
  check_utf8(text, name);
  try {
    Json value = Json::parse(text, [&](int depth, Json::parse_event_t, Json&) {
      if (depth > kMaxNesting) throw FormatError(name, "nested too deeply");
      return true;
    });
    if (!value.is_object()) throw FormatError(name, "must hold an object");
    return value;
  } catch (const Json::exception& error) {
    throw FormatError(name, std::string("not valid JSON: ") + error.what());
  }
}

std::string read_configuration(const std::string& path) {
  return read_all(*open_file(path), kMaxConfiguration);
}

Settings read_settings(const Json& configuration) {
  return V1Reader(configuration).read();
}

}  // namespace msprobe::collector::monitor
