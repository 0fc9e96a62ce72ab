// SPDX-License-Identifier: Apache-2.0
#include "monitor/trend/trend_database.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

namespace msprobe::monitor {
namespace {

// The version number is for later readers; the viewer ignores it.
constexpr const char* kTrendTables = R"(PRAGMA user_version = 1;
CREATE TABLE monitoring_targets (
    target_id INTEGER PRIMARY KEY AUTOINCREMENT,
    target_name TEXT NOT NULL,
    vpp_stage INTEGER NOT NULL,
    micro_step INTEGER NOT NULL DEFAULT 0,
    UNIQUE(target_name, vpp_stage, micro_step)
);
CREATE TABLE monitoring_metrics (
    metric_id INTEGER PRIMARY KEY AUTOINCREMENT,
    metric_name TEXT UNIQUE NOT NULL
);
CREATE TABLE monitoring_tags (
    tag_id INTEGER PRIMARY KEY AUTOINCREMENT,
    tag_name TEXT NOT NULL,
    category TEXT NOT NULL,
    metric_id INTEGER NOT NULL,
    UNIQUE(tag_name, category, metric_id),
    FOREIGN KEY (metric_id) REFERENCES monitoring_metrics(metric_id)
);
CREATE TABLE tag_target_mapping (
    tag_id INTEGER NOT NULL,
    target_id INTEGER NOT NULL,
    PRIMARY KEY (tag_id, target_id),
    FOREIGN KEY (tag_id) REFERENCES monitoring_tags(tag_id),
    FOREIGN KEY (target_id) REFERENCES monitoring_targets(target_id)
);
)";

constexpr const char* kNanTable = R"(CREATE TABLE trend_nan (
    rank INTEGER NOT NULL,
    step INTEGER NOT NULL,
    target_id INTEGER NOT NULL,
    metric_id INTEGER NOT NULL,
    statistics TEXT NOT NULL,
    PRIMARY KEY (rank, step, target_id, metric_id)
) WITHOUT ROWID)";

/// The viewer's columns: no NaN, infinities and large values at a fixed end.
std::optional<double> stored_value(double value) {
  constexpr double kMost = 1e9;
  if (std::isnan(value)) return std::nullopt;
  if (std::isinf(value)) return std::copysign(kMost + 1, value);
  return std::clamp(value, -kMost, kMost);
}

}  // namespace

TrendDatabase::TrendDatabase(const std::string& path, TrendPlan plan)
    : plan_(std::move(plan)), output_(path) {
  create_tables();
  const database::Statement add_metric = output_.prepare("INSERT INTO monitoring_metrics VALUES (NULL,?)");
  for (const TrendMetric& metric : plan_.metrics)
    database::Values(output_, add_metric).text(metric.name).run();
  add_target_ = output_.prepare("INSERT INTO monitoring_targets VALUES (?,?,?,?)");
  add_tag_ = output_.prepare("INSERT INTO monitoring_tags VALUES (?,?,?,?)");
  add_mapping_ = output_.prepare("INSERT OR IGNORE INTO tag_target_mapping VALUES (?,?)");
  std::string places = "?,?,?,?";
  for (std::size_t i = 0; i < plan_.statistics.size(); ++i) places += ",?";
  add_row_ = output_.prepare(fmt::format("INSERT OR REPLACE INTO trend_data VALUES ({})", places).c_str());
}

void TrendDatabase::create_tables() {
  output_.execute(kTrendTables);
  std::string columns;
  for (const std::string& statistic : plan_.statistics)
    columns += fmt::format("    \"{}\" REAL DEFAULT NULL,\n", statistic);
  output_.execute(fmt::format("CREATE TABLE trend_data (\n"
                              "    rank INTEGER NOT NULL,\n    step INTEGER NOT NULL,\n"
                              "    target_id INTEGER NOT NULL,\n    metric_id INTEGER NOT NULL,\n{}"
                              "    PRIMARY KEY (rank, step, target_id, metric_id),\n"
                              "    FOREIGN KEY (target_id) REFERENCES monitoring_targets(target_id),\n"
                              "    FOREIGN KEY (metric_id) REFERENCES monitoring_metrics(metric_id)\n"
                              ") WITHOUT ROWID",
                              columns)
                      .c_str());
  std::string extremes = plan_.rank_first ? "max_rank INTEGER DEFAULT 0, min_step INTEGER DEFAULT 0, "
                                            "max_step INTEGER DEFAULT 0"
                                          : "min_step INTEGER DEFAULT 0, max_step INTEGER DEFAULT 0, "
                                            "max_rank INTEGER DEFAULT 0";
  for (const TrendMetric& metric : plan_.metrics)
    extremes += fmt::format(", \"{}\" TEXT DEFAULT NULL", metric.name);
  output_.execute(fmt::format("CREATE TABLE global_stats ({})", extremes).c_str());
}

std::int64_t TrendDatabase::target_of(const TrendRow& row) {
  std::string key = fmt::format("{} {} ", row.stage, row.micro_step);
  key += row.target;
  const auto [found, added] =
      targets_.try_emplace(std::move(key), static_cast<std::int64_t>(targets_.size()) + 1);
  if (added)
    database::Values(output_, add_target_)
        .number(found->second)
        .text(row.target)
        .number(row.stage)
        .number(row.micro_step)
        .run();
  return found->second;
}

void TrendDatabase::add_tags(const TrendRow& row, std::int64_t target) {
  if (!tagged_.emplace(target, row.metric).second) return;
  const auto metric_id = static_cast<std::int64_t>(row.metric) + 1;
  for (const TrendTag& tag : plan_.tags(row.target)) {
    std::string key = fmt::format("{} {} ", row.metric, tag.category);
    key += tag.name;
    const auto [found, added] =
        tags_.try_emplace(std::move(key), static_cast<std::int64_t>(tags_.size()) + 1);
    if (added)
      database::Values(output_, add_tag_)
          .number(found->second)
          .text(tag.name)
          .text(tag.category)
          .number(metric_id)
          .run();
    database::Values(output_, add_mapping_).number(found->second).number(target).run();
  }
}

void TrendDatabase::add(const TrendRow& row) {
  const std::int64_t target = target_of(row);
  add_tags(row, target);
  database::Values values(output_, add_row_);
  values.number(row.rank).number(row.step).number(target).number(static_cast<std::int64_t>(row.metric) + 1);
  for (const double value : row.values) values.number(stored_value(value));
  values.run();
  add_nan(row, target);
  least_step_ = rows_ == 0 ? row.step : std::min(least_step_, row.step);
  greatest_step_ = std::max(greatest_step_, row.step);
  greatest_rank_ = std::max(greatest_rank_, row.rank);
  ++rows_;
}

void TrendDatabase::add_nan(const TrendRow& row, std::int64_t target) {
  std::string names;
  for (std::size_t i = 0; i < row.values.size(); ++i) {
    if ((row.given >> i & 1) == 0 || !std::isnan(row.values[i])) continue;
    if (!names.empty()) names += ',';
    names += plan_.statistics[i];
  }
  if (names.empty() && !add_nan_.exists()) return;
  if (!add_nan_.exists()) {
    output_.execute(kNanTable);
    add_nan_ = output_.prepare("INSERT OR REPLACE INTO trend_nan VALUES (?,?,?,?,?)");
    drop_nan_ = output_.prepare(
        "DELETE FROM trend_nan WHERE rank = ? AND step = ? AND target_id = ? AND metric_id = ?");
  }
  // A row may take the place of an earlier one.
  database::Values values(output_, names.empty() ? drop_nan_ : add_nan_);
  values.number(row.rank).number(row.step).number(target).number(static_cast<std::int64_t>(row.metric) + 1);
  if (!names.empty()) values.text(names);
  values.run();
}

void TrendDatabase::commit() {
  std::string places = "?,?,?";
  for (std::size_t i = 0; i < plan_.metrics.size(); ++i) places += ",?";
  database::Statement add =
      output_.prepare(fmt::format("INSERT INTO global_stats VALUES ({})", places).c_str());
  {
    database::Values values(output_, add);
    if (plan_.rank_first) values.number(greatest_rank_);
    values.number(least_step_).number(greatest_step_);
    if (!plan_.rank_first) values.number(greatest_rank_);
    std::vector<std::string> texts;
    for (const TrendMetric& metric : plan_.metrics)
      texts.push_back(fmt::format("{}", fmt::join(metric.statistics, ",")));
    for (const std::string& text : texts) values.text(text);
    values.run();
  }
  for (database::Statement* statement :
       {&add, &add_target_, &add_tag_, &add_mapping_, &add_row_, &add_nan_, &drop_nan_})
    statement->reset();
  output_.commit(false);
}

}  // namespace msprobe::monitor
