// SPDX-License-Identifier: Apache-2.0
// The trend database that the viewer opens (docs/formats.md, "The trend database").
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "database/output_database.hpp"

namespace msprobe::monitor {

/// A word by which the viewer searches for targets.
struct TrendTag {
  std::string name;
  std::string_view category;
};

/// Makes the tags of a target's name.
using TagMaker = std::vector<TrendTag> (*)(std::string_view target);

struct TrendMetric {
  std::string name;
  std::vector<std::string> statistics;
};

struct TrendPlan {
  std::vector<TrendMetric> metrics;
  std::vector<std::string> statistics;  // the columns: the statistics of all metrics
  TagMaker tags = nullptr;
  bool rank_first = false;  // the order of columns in the table of extremes
};

struct TrendRow {
  std::int64_t rank = 0;
  std::int64_t step = 0;
  std::string_view target;
  std::int64_t stage = 0;
  std::int64_t micro_step = 0;
  std::size_t metric = 0;          // index into the plan's metrics
  std::span<const double> values;  // one for each of the plan's statistics
  std::uint64_t given = 0;         // one bit for each statistic that the row has
};

class TrendDatabase {
 public:
  /// Metrics and statistics need names that are plain words.
  TrendDatabase(const std::string& path, TrendPlan plan);
  /// If several rows have the same key, the last one counts.
  void add(const TrendRow& row);
  std::uint64_t rows() const { return rows_; }
  /// Gives the file its name.
  void commit();

 private:
  void create_tables();
  std::int64_t target_of(const TrendRow& row);
  void add_tags(const TrendRow& row, std::int64_t target);
  /// A NaN is NULL in its column; the table trend_nan, which is msprobe's own, records the NaN.
  void add_nan(const TrendRow& row, std::int64_t target);

  TrendPlan plan_;
  database::OutputDatabase output_;
  database::Statement add_target_;
  database::Statement add_tag_;
  database::Statement add_mapping_;
  database::Statement add_row_;
  database::Statement add_nan_;  // prepared at the first NaN
  database::Statement drop_nan_;
  std::unordered_map<std::string, std::int64_t> targets_;
  std::unordered_map<std::string, std::int64_t> tags_;
  std::set<std::pair<std::int64_t, std::size_t>> tagged_;  // the targets and metrics that have tags
  std::uint64_t rows_ = 0;
  std::int64_t least_step_ = 0;
  std::int64_t greatest_step_ = 0;
  std::int64_t greatest_rank_ = 0;
};

}  // namespace msprobe::monitor
