// SPDX-License-Identifier: Apache-2.0
// Reads and checks the configuration of the monitor: that of TrainerMon (layout 1) and of TrainerMonitorV2
// (layout 2).
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "series/alert_rules.hpp"
#include "series/quantities.hpp"

namespace msprobe::collector::monitor {

using series::Json;
using series::MonitorStatistic;

enum class FileFormat : std::uint8_t { csv, tensorboard };

/// The steps that are collected.
struct Window {
  std::uint64_t start = 0;
  std::uint64_t stop = std::numeric_limits<std::uint64_t>::max();  // exclusive
  std::uint64_t interval = 1;
  std::uint64_t times = 100'000'000;

  bool holds(std::uint64_t step) const {
    return step >= start && step < stop && (step - start) % interval == 0;
  }
};

/// A monitor of layout 2.
struct MonitorPart {
  std::string name;            // as the configuration spells it: the prefix of its files
  bool communication = false;  // its rows have no stage, and calls of a step are folded
  std::vector<MonitorStatistic> statistics;
};

struct Settings {
  int layout = 1;
  Window window;
  std::vector<std::int64_t> ranks;  // empty: all
  std::uint64_t steps_per_file = 1;
  std::vector<MonitorStatistic> statistics;  // of layout 1, shape and dtype among them
  double eps = 1e-8;
  int digits = 6;
  bool each_micro_batch = false;  // grad_unreduced has a column micro_step
  FileFormat format = FileFormat::csv;
  std::vector<series::AlertRule> rules;
  bool dump_alerts = false;
  std::optional<std::pair<std::string, std::string>> append_output;  // of time tags
  std::string output_dir = "./";                                     // of layout 2
  std::vector<MonitorPart> parts;                                    // of layout 2: the enabled ones

  Json effective;  // key -> value after defaults and checks
  std::vector<std::string> warnings;
};

/// Messages use `name`. Throws series::SettingError, and FormatError if the text is no JSON object.
Json parse_configuration(std::string_view text, const std::string& name);
/// Reads the text of a file. Throws IoError and FormatError.
std::string read_configuration(const std::string& path);

Settings read_settings(const Json& configuration);
/// `framework` takes precedence over the file unless it is empty.
Settings read_settings_v2(const Json& configuration, const std::string& framework);

/// Replaces `ops` of layout 1; adds texts to `warnings`.
void set_statistics(Settings& settings, const Json& value);

}  // namespace msprobe::collector::monitor
