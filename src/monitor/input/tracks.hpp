// SPDX-License-Identifier: Apache-2.0
// Reads whole series: one tensor's statistics, step by step.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "monitor/input/rows.hpp"
#include "monitor/input/tree.hpp"
#include "support/coverage.hpp"

namespace msprobe::monitor {

/// One tensor: all its statistics over the steps.
struct Track {
  std::string quantity;
  std::optional<std::int64_t> stage;
  std::string name;
  std::optional<std::int64_t> micro_step;
  std::string shape;  // of its first tensor, if the file has shapes
  std::string dtype;
  std::vector<std::int64_t> steps;  // ascending, each once
  /// For each of Tracks::statistics, a value for each step; no_number() if the file has none.
  std::vector<std::vector<double>> values;
};

struct Tracks {
  std::vector<std::string> statistics;  // in the order of their first appearance
  std::vector<Track> tracks;            // likewise: the order of training
  std::vector<Coverage::Gap> unread;    // rows without any number to compare
  std::vector<std::string> warnings;    // rows left out, steps that occurred twice
  std::vector<std::string> problems;    // files that could not be read, or not completely
};

/// Counts the rows without any number to compare as missed; a row has `cells` cells.
void miss_unread(const Tracks& tracks, std::size_t cells, Coverage& coverage);

/// Decides which statistics to keep; an empty function keeps all.
using TakesStatistic = std::function<bool(std::string_view)>;

/// Reads all files of one prefix (SeriesFile::prefix) of a rank. If a step occurs twice, the last occurrence
/// counts, because training was resumed from a checkpoint. A row without a tensor makes a track, but no step.
/// Memory: 8 bytes per value.
Tracks read_tracks(const RankFolder& folder, std::string_view prefix, const TakesStatistic& takes = {});

/// Calls `visit` with every row of a file, and returns what was wrong: bad rows are a warning, a bad file is
/// a problem.
struct FileNotes {
  std::string warning;
  std::string problem;
  MonitorRows::LeftOut left_out;
};
using RowVisit = std::function<void(const std::vector<std::string>& statistics, const MonitorRow& row)>;
FileNotes visit_rows(const SeriesFile& file, const RowVisit& visit);

}  // namespace msprobe::monitor
