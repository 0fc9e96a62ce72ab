// SPDX-License-Identifier: Apache-2.0
#include "monitor/analyze/analyze.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

#include "monitor/analyze/missing_gradients.hpp"
#include "monitor/analyze/ranking.hpp"
#include "monitor/input/tree.hpp"
#include "support/ascii.hpp"
#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/text.hpp"

namespace msprobe::monitor {
namespace {

constexpr std::string_view kAlertFile = "anomaly.json";

std::string below(const std::string& folder, std::string_view name) {
  return folder + (folder.ends_with('/') ? "" : "/") + std::string(name);
}

/// The folders that hold alerts, or were made for them.
std::vector<std::string> alert_folders(const std::string& input) {
  std::string folder = input;
  if (const std::string inner = below(input, "anomaly_detected"); path_exists(inner)) folder = inner;
  std::vector<std::string> found;
  for (const std::string& name : names_in(folder, Named::folders)) {
    const std::string path = below(folder, name);
    if (name.starts_with("rank") || path_exists(below(path, kAlertFile))) found.push_back(path);
  }
  if (found.empty())
    throw FormatError(
        display(input),
        "has no rank{r}/anomaly.json; a monitor writes them with \"dump\" in its section \"alert\"");
  return found;
}

/// Steps from the first to the last.
struct StepRange {
  std::int64_t first = INT64_MAX;
  std::int64_t last = INT64_MIN;

  void add(std::int64_t from, std::int64_t to) {
    first = std::min(first, from);
    last = std::max(last, to);
  }
  bool empty() const { return first > last; }
  bool holds(std::int64_t step) const { return first <= step && step <= last; }
};

/// The steps of the alerts and of the csv files beside them.
StepRange monitored_steps(const std::string& input, const std::vector<Alert>& alerts) {
  StepRange range;
  for (const Alert& alert : alerts) range.add(alert.step, alert.step);
  try {
    for (const RankFolder& rank : find_tree(folder_of_series(input)).ranks) {
      for (const SeriesFile& file : rank.files) range.add(file.begin, file.end);
    }
  } catch (const Error&) {  // there are none
  }
  return range;
}

/// Steps without an alert are clean only if they were monitored.
std::vector<std::string> steps_not_judged(const std::set<std::int64_t>& steps, const StepRange& monitored) {
  std::vector<std::string> lines;
  for (const std::int64_t step : steps) {
    if (monitored.holds(step)) continue;
    lines.push_back(monitored.empty() ? fmt::format("step {}: no file tells which steps were monitored", step)
                                      : fmt::format("step {}: only steps {} to {} were monitored", step,
                                                    monitored.first, monitored.last));
  }
  return lines;
}

}  // namespace

AlertRanking rank_alerts_in(const AnalyzeOptions& options) {
  AlertRanking ranking;
  std::vector<Alert> alerts;
  for (const std::string& folder : alert_folders(options.input)) {
    const std::string path = below(folder, kAlertFile);
    ++ranking.coverage.compared;
    if (!path_exists(path)) continue;  // this rank had none
    try {
      read_alerts(*open_file(path), alerts, ranking.warnings);
    } catch (const FormatError& error) {
      ranking.problems.emplace_back(error.what());
    } catch (const IoError& error) {
      ranking.problems.emplace_back(error.what());
    }
  }
  if (!options.steps.empty()) {
    ranking.not_judged = steps_not_judged(options.steps, monitored_steps(options.input, alerts));
    std::erase_if(alerts, [&](const Alert& alert) { return !options.steps.contains(alert.step); });
  }
  ranking.missing = drop_missing_gradients(options.input, alerts);
  rank_alerts(alerts);
  ranking.all = alerts.size();
  alerts.resize(std::min(alerts.size(), options.most));
  ranking.first = std::move(alerts);
  return ranking;
}

std::optional<std::set<std::int64_t>> parse_steps(std::string_view text) {
  text = trimmed(text);
  if (text.starts_with('[') != text.ends_with(']')) return std::nullopt;
  if (text.starts_with('[')) text = trimmed(text.substr(1, text.size() - 2));
  std::set<std::int64_t> steps;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const auto step = whole_number<std::int64_t>(trimmed(text.substr(0, comma)));
    if (!step) return std::nullopt;
    steps.insert(*step);
    if (comma == std::string_view::npos) break;
    text = trimmed(text.substr(comma + 1));
  }
  return steps;
}

}  // namespace msprobe::monitor
