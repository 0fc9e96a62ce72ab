// SPDX-License-Identifier: Apache-2.0
// Gathers the data of the report's page. It is packed group by group, so that memory depends on the largest
// group of files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "monitor/compare/compare.hpp"
#include "monitor/report/cells.hpp"
#include "monitor/report/outbreak.hpp"
#include "support/coverage.hpp"

namespace msprobe::monitor {

struct ReportOptions {
  std::string first;
  std::string second;  // empty: one run
  std::string output = "monitor_report.html";
  std::vector<std::string> statistics;
  double tolerance = 8;
  double most_megabytes = 64;  // limit for the cells in the file
};

/// A place where a row parts, passes or breaks out.
struct RowMark {
  std::size_t row = 0;
  std::string statistic;
  std::int64_t step = 0;
  std::string kind;  // parted, passing, number, growth
  int run = 0;       // run of the outbreak: 0 or 1
};

/// One statistic of a block: a scale for each row, and the packed cells of each run.
struct PackedStatistic {
  std::string name;
  std::vector<CellScale> scales;
  std::vector<std::string> cells;  // of one run, or of both
};

/// The rows of one quantity on one rank.
struct QuantityRows {
  std::int64_t rank = 0;
  std::string quantity;
  std::vector<std::string> names;
  std::vector<std::int64_t> stages;       // -1: no stage
  std::vector<std::int64_t> micro_steps;  // -1: no micro step
  std::vector<std::int64_t>
      steps;              // the first step of each bin; a bin has its smallest and its largest number
  std::size_t width = 1;  // steps in a bin
  std::vector<PackedStatistic> statistics;
  std::vector<RowMark> marks;
};

/// A series like a loss: each of its tensors is a single number.
struct Curve {
  std::string name;
  std::int64_t rank = 0;
  std::vector<std::int64_t> steps;
  struct CurveRun {
    std::vector<double> values;
    std::vector<bool> there;  // whether the run has a number at the step
  };
  std::vector<CurveRun> runs;
};

/// The first outbreak of a run.
struct RunOutbreak {
  Moment moment;
  std::int64_t rank = 0;
  std::string place;  // quantity, name
  std::string statistic;
  Outbreak outbreak;
};

struct ReportData {
  std::vector<QuantityRows> blocks;
  std::vector<Curve> curves;
  std::optional<MonitorComparison> comparison;
  std::vector<std::optional<RunOutbreak>> outbreaks;  // of each run
  Coverage coverage;                                  // of the one run, or of both
  std::vector<std::string> notes;                     // series that the page does not show
  std::vector<std::string> warnings;
  std::vector<std::string> problems;
  std::size_t series = 0;
};

ReportData gather(const ReportOptions& options, Progress* progress);

}  // namespace msprobe::monitor
