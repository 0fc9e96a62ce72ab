// SPDX-License-Identifier: Apache-2.0
// Reads the configuration of layout 2. Most errors in it give only a warning.
#include <algorithm>
#include <array>

#include "collector/monitor/settings_reader.hpp"
#include "series/setting_error.hpp"
#include "support/ascii.hpp"
#include "support/text.hpp"

namespace msprobe::collector::monitor {
namespace {

using series::python_str_of;
using series::python_truth_of;
using series::SettingError;

constexpr std::uint64_t kMostSteps = 1'000'000;
constexpr std::array<MonitorStatistic, 5> kAllParts = {MonitorStatistic::min, MonitorStatistic::max,
                                                       MonitorStatistic::mean, MonitorStatistic::norm,
                                                       MonitorStatistic::nans};
constexpr std::string_view kPartNames[] = {"module", "weight_grad", "optimizer", "param", "cc"};

Json part_defaults(const std::string& word) {
  if (word == "module") return {{"targets", Json::array()}};
  if (word == "weight_grad") return {{"monitor_mbs_grad", false}};
  if (word == "optimizer") return {{"mv_distribution", true}};
  if (word == "param") return {{"param_distribution", true}};
  return {{"cc_codeline", Json::array()},
          {"cc_log_only", false},
          {"cc_pre_hook", false},
          {"module_ranks", Json::array()}};
}

class V2Reader : SettingsReader {
 public:
  V2Reader(const Json& configuration, const std::string& framework)
      : SettingsReader(configuration, 2), framework_(framework) {}

  Settings read() {
    read_framework();
    read_output();
    read_ranks();
    read_window(1, "100000000");
    read_end();
    read_steps_per_file();
    if (python_truth_of(get("async_write", false)))
      warn("async_write is not supported yet; falling back to sync writes.");
    settings_.effective["patch_optimizer_step"] = get("patch_optimizer_step", true);
    read_parts();
    return std::move(settings_);
  }

 private:
  void warn(const std::string& text) { settings_.warnings.push_back("[monitor_v2] " + text); }

  void read_framework() {
    const std::string named = framework_.empty() ? python_str_of(get("framework", "pytorch")) : framework_;
    const std::string word = lower_case(named);
    if (word == "pytorch" || word == "pt" || word == "torch") {
      settings_.effective["framework"] = "pytorch";
    } else if (word == "mindspore" || word == "ms") {
      settings_.effective["framework"] = "mindspore";
    } else {
      throw SettingError("ValueError", "[monitor_v2] Unsupported framework '" + named + "'");
    }
  }

  void read_output() {
    const Json folder = get("output_dir", "./");
    if (!folder.is_string()) {
      throw SettingError("TypeError", "expected str, bytes or os.PathLike object, not " +
                                          std::string(series::python_type_of(folder)));
    }
    settings_.output_dir = folder.get<std::string>();
    settings_.effective["output_dir"] = folder;
    const std::string format = lower_case(python_str_of(get("format", "csv")));
    if (format != "csv") {
      throw SettingError("ValueError", "[monitor_v2] Unsupported format '" + format +
                                           "', only 'csv' is currently supported.");
    }
    settings_.effective["format"] = "csv";
  }

  void read_ranks() {
    const Json rank = get("rank", Json::array());
    if (rank.is_number_integer() || rank.is_boolean()) {
      settings_.ranks = {rank.is_boolean() ? std::int64_t{rank.get<bool>()} : rank.get<std::int64_t>()};
    } else if (rank.is_array()) {
      try {
        settings_.ranks = rank_list(rank);
      } catch (const SettingError& error) {
        const std::string what = error.what();
        warn("Validate rank list failed: " + what.substr(what.find(": ") + 2) + "; fallback to all ranks.");
      }
    } else {
      warn("Rank config should be int or list; fallback to all ranks.");
    }
    settings_.effective["rank"] = settings_.ranks;
  }

  void read_end() {
    Window& window = settings_.window;
    std::uint64_t usual = 0;
    if (__builtin_mul_overflow(window.times, window.interval, &usual) ||
        __builtin_add_overflow(usual, window.start, &usual)) {
      usual = std::numeric_limits<std::uint64_t>::max();
    }
    const auto start = static_cast<std::int64_t>(std::min<std::uint64_t>(window.start, INT64_MAX));
    window.stop = at_least("stop_step", start, usual, "None");
    settings_.effective["stop_step"] = window.stop;
  }

  void read_steps_per_file() {
    const Json value = get("step_count_per_record", 1);
    const auto refuse = [&](const std::string& reason) {
      warn("Validate step_count_per_record failed: step_count_per_record " + reason + "; fallback to 1.");
    };
    if (!value.is_number_integer()) {
      refuse("must be int.");
    } else if (value < 1) {
      refuse("must greater than 0");
    } else if (value > kMostSteps) {
      refuse("must smaller than 1e6");
    } else {
      settings_.steps_per_file = value.get<std::uint64_t>();
    }
    settings_.effective["step_count_per_record"] = settings_.steps_per_file;
  }

  void read_parts() {
    Json monitors = get("monitors", Json::object());
    if (!monitors.is_object()) {
      warn("Monitors config should be a dict; using empty config.");
      monitors = Json::object();
    }
    Json enabled = Json::object();
    for (const auto& [name, options] : monitors.items()) {
      if (!options.is_object()) continue;
      const std::string word = lower_case(name);
      const auto on = options.find("enabled");
      if (!(on == options.end() ? word == "module" : python_truth_of(*on))) continue;
      if (std::find(std::begin(kPartNames), std::end(kPartNames), word) == std::end(kPartNames)) {
        warn("Unsupported monitor '" + name + "' for framework '" +
             settings_.effective["framework"].get<std::string>() + "'.");
        continue;
      }
      enabled[name] = read_part(name, word, options);
    }
    settings_.effective["monitors"] = std::move(enabled);
  }

  Json read_part(const std::string& name, const std::string& word, const Json& options) {
    MonitorPart part{name, word == "cc", part_statistics(options)};
    Json known = options;
    known["ops"] = names_of(part.statistics);
    known["enabled"] = true;
    // The keys of communication may also be in an object inside, as in layout 1.
    if (const auto inner = known.find("cc_distribution"); inner != known.end() && inner->is_object()) {
      const Json moved = *inner;
      for (const auto& [key, value] : moved.items()) {
        if (!known.contains(key)) known[key] = value;
      }
    }
    const Json defaults = part_defaults(word);
    for (const auto& [key, fallback] : defaults.items()) {
      if (!known.contains(key)) known[key] = fallback;
    }
    check_eps(word, known);
    if (const auto value = known.find("monitor_mbs_grad"); value != known.end() && !value->is_boolean()) {
      warn("Invalid boolean value: " + python_str_of(*value) + ", fallback to False.");
      *value = false;
    }
    settings_.parts.push_back(std::move(part));
    return known;
  }

  std::vector<MonitorStatistic> part_statistics(const Json& options) {
    std::vector<MonitorStatistic> all(kAllParts.begin(), kAllParts.end());
    const auto given = options.find("ops");
    if (given == options.end()) return all;
    const Json list = given->is_string() ? Json::array({*given}) : *given;
    if (!list.is_array()) return all;
    std::vector<MonitorStatistic> found;
    for (const Json& name : list) {
      const std::string text = python_str_of(name);
      const auto known =
          std::ranges::find_if(kAllParts, [&](MonitorStatistic one) { return name_of(one) == text; });
      if (known == kAllParts.end()) {
        warn("Unsupported op '" + text + "' is ignored.");
      } else if (std::find(found.begin(), found.end(), *known) == found.end()) {
        found.push_back(*known);
      }
    }
    if (!found.empty()) return found;
    warn("No valid ops provided; fallback to default ops.");
    return all;
  }

  void check_eps(const std::string& word, Json& options) {
    const auto eps = options.find("eps");
    if (eps == options.end()) return;
    const std::optional<double> number =
        eps->is_string() ? parse_number(eps->get<std::string>())
                         : (eps->is_number() ? std::optional(eps->get<double>()) : std::nullopt);
    if (number && (*number > 0 || word != "weight_grad")) return;
    if (word != "weight_grad") {
      throw SettingError("ValueError", "could not convert string to float: " + series::python_repr_of(*eps));
    }
    warn(number ? "eps must be positive, got " + python_repr(*number) + ", fallback to 1e-8."
                : "Invalid eps value: " + python_str_of(*eps) + ", fallback to 1e-8.");
    *eps = 1e-8;
  }

  const std::string& framework_;
};

}  // namespace

Settings read_settings_v2(const Json& configuration, const std::string& framework) {
  return V2Reader(configuration, framework).read();
}

}  // namespace msprobe::collector::monitor
