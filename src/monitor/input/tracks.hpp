// SPDX-License-Identifier: Apache-2.0
// Whole series: what one tensor's statistics were, step by step.
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
  std::string shape;  // of its first tensor, where the file tells
  std::string dtype;
  std::vector<std::int64_t> steps;  // ascending, each once
  /// Of each of Tracks::statistics, a value for each step; no_number() where the file has none.
  std::vector<std::vector<double>> values;
};

struct Tracks {
  std::vector<std::string> statistics;  // in the order of their first appearance
  std::vector<Track> tracks;            // likewise: the order in which training came to them
  std::vector<Coverage::Gap> unread;    // rows of which nothing can be compared
  std::vector<std::string> warnings;    // rows left out, steps that came twice
  std::vector<std::string> problems;    // files that could not be read, or not to their end
};

/// Adds the rows of which nothing can be compared; a row has `cells` of them.
void miss_unread(const Tracks& tracks, std::size_t cells, Coverage& coverage);

/// Which statistics are kept; all if it is empty.
using TakesStatistic = std::function<bool(std::string_view)>;

/// All files of one prefix (SeriesFile::prefix) of a rank. A step that comes twice counts as it came last:
/// training was begun again from a checkpoint. Rows without a tensor make a track, but no step. Memory: 8
/// bytes a value.
Tracks read_tracks(const RankFolder& folder, std::string_view prefix, const TakesStatistic& takes = {});

/// Calls `visit` with every row of a file, and gives what was wrong: rows are a warning, the file a problem.
struct FileNotes {
  std::string warning;
  std::string problem;
  MonitorRows::LeftOut left_out;
};
using RowVisit = std::function<void(const std::vector<std::string>& statistics, const Row& row)>;
FileNotes visit_rows(const SeriesFile& file, const RowVisit& visit);

}  // namespace msprobe::monitor
