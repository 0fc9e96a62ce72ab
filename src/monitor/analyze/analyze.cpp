// SPDX-License-Identifier: Apache-2.0
#include "monitor/analyze/analyze.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
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
constexpr std::string_view kNoFile =
    "there is no anomaly.json, which a monitor that dumps its alerts writes first";

std::string below(const std::string& folder, std::string_view name) {
  return folder + (folder.ends_with('/') ? "" : "/") + std::string(name);
}

/// The folders that hold alerts or were created for alerts.
std::vector<std::string> alert_folders(const std::string& input) {
  std::string folder = input;
  if (const std::string inner = below(input, "anomaly_detected"); path_exists(inner)) folder = inner;
  std::vector<std::string> found;
  for (const std::string& name : names_in(folder, WhichNames::folders)) {
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

/// The ranks whose csv files are in the same folder as the alerts.
std::vector<RankFolder> ranks_with_series(const std::string& input) {
  try {
    return find_tree(folder_of_series(input)).ranks;
  } catch (const Error&) {
    return {};
  }
}

/// The range of steps that the alerts and the csv files cover.
StepRange monitored_steps(const std::vector<RankFolder>& ranks, const std::vector<Alert>& alerts) {
  StepRange range;
  for (const Alert& alert : alerts) range.add(alert.step, alert.step);
  for (const RankFolder& rank : ranks) {
    for (const SeriesFile& file : rank.files) range.add(file.begin, file.end);
  }
  return range;
}

/// A step without an alert is clean only if it was monitored. Returns a text about the other steps; empty if
/// all were monitored.
std::vector<std::string> steps_not_judged(const std::set<std::int64_t>& steps, const StepRange& monitored) {
  std::vector<std::int64_t> others;
  std::ranges::copy_if(steps, std::back_inserter(others),
                       [&](std::int64_t step) { return !monitored.holds(step); });
  if (others.empty()) return {};
  std::string text = fmt::format("step {}", others.front());
  if (others.size() > 1) text += fmt::format(" and {} more", human_count(others.size() - 1));
  return {text + (monitored.empty() ? ": no file says which steps were monitored"
                                    : fmt::format(": only steps {} to {} were monitored", monitored.first,
                                                  monitored.last))};
}

}  // namespace

AlertRanking rank_alerts_in(const MonitorAnalyzeOptions& options) {
  AlertRanking ranking;
  std::vector<Alert> alerts;
  const std::vector<std::string> folders = alert_folders(options.input);
  const std::vector<RankFolder> ranks = ranks_with_series(options.input);
  for (const RankFolder& rank : ranks) {
    const std::string name = fmt::format("/rank{}", rank.rank);
    if (std::ranges::none_of(folders, [&](const std::string& folder) { return folder.ends_with(name); }))
      ranking.coverage.miss(kNoFile, name.substr(1));
  }
  for (const std::string& folder : folders) {
    const std::string path = below(folder, kAlertFile);
    if (!path_exists(path)) {
      ranking.coverage.miss(kNoFile, folder);
      continue;
    }
    try {
      if (read_alerts(*open_file(path), alerts, ranking.warnings) == 0) {
        ++ranking.coverage.compared;
      } else {
        ranking.coverage.miss("records of its alerts could not be read", path);
      }
    } catch (const Error& error) {
      ranking.problems.emplace_back(error.what());
    }
  }
  if (!options.steps.empty()) {
    ranking.not_judged = steps_not_judged(options.steps, monitored_steps(ranks, alerts));
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
