// SPDX-License-Identifier: Apache-2.0
// Formats rows as the text of csv files, and as records of an event file.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "collector/monitor/batch.hpp"

namespace msprobe::collector::monitor {

/// The text that a step adds to one file.
struct StepText {
  std::string prefix;  // of the file's name
  std::string header;  // a line
  std::string rows;    // lines
};

std::vector<StepText> csv_blocks(const Batch& batch);
/// Scalars of layout 1.
std::string event_records(const Batch& batch);

/// The value in the form that alerts quote.
std::string quoted_value(const ObservedCell& cell);

/// The columns of a row: its own ones, or the configured statistics.
std::vector<ObservedCell> cells_of(const SeriesRow& row,
                                   const std::vector<series::MonitorStatistic>& statistics);
std::span<const std::string_view> own_columns(const SeriesInfo& series);
std::string_view column_name(const SeriesInfo& series,
                             const std::vector<series::MonitorStatistic>& statistics, std::size_t column);

}  // namespace msprobe::collector::monitor
