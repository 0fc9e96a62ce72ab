// SPDX-License-Identifier: Apache-2.0
// `msprobe monitor analyze`: the first alerts of a training.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "monitor/analyze/alert_file.hpp"
#include "support/coverage.hpp"

namespace msprobe::monitor {

struct MonitorAnalyzeOptions {
  std::string input;
  std::size_t most = 8;
  std::set<std::int64_t> steps;  // empty: all
};

struct AlertRanking {
  std::vector<Alert> first;             // at most as many as were asked for
  std::size_t all = 0;                  // of the steps asked for
  std::size_t missing = 0;              // that are left out, as no tensor was there
  Coverage coverage;                    // of the ranks
  std::vector<std::string> not_judged;  // requested steps without a file, in at most one line
  std::vector<std::string> warnings;
  std::vector<std::string> problems;  // files that could not be read
};

/// Reads anomaly.json of every folder in `input`, or in its folder anomaly_detected. FormatError if there is
/// neither such a file nor a folder for one.
AlertRanking rank_alerts_in(const MonitorAnalyzeOptions& options);

/// "[1, 2]", "1,2" and "2" as numbers; nothing for anything else.
std::optional<std::set<std::int64_t>> parse_steps(std::string_view text);

}  // namespace msprobe::monitor
