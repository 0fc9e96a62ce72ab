// SPDX-License-Identifier: Apache-2.0
// `msprobe monitor alerts`: rules of alerts applied to files, as a monitor applies them while a training
// runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "monitor/analyze/alert_file.hpp"
#include "series/alert_rules.hpp"
#include "support/coverage.hpp"

namespace msprobe {
class Progress;
}

namespace msprobe::monitor {

struct ReplayOptions {
  std::string input;
  std::vector<series::AlertRule> rules;
  std::string output;  // folder for rank{r}/anomaly.json; empty: none
  std::size_t most = 8;
};

struct Replay {
  std::vector<Alert> first;  // of all ranks, at most as many as were asked for
  std::uint64_t all = 0;
  std::uint64_t values = 0;
  Coverage coverage;  // of the series
  std::vector<std::string> warnings;
  std::vector<std::string> problems;
};

/// Judges each series step by step against the mean of its earlier values. Rows without a tensor are not
/// judged.
Replay replay_alerts(const ReplayOptions& options, Progress* progress);

/// The rules of a monitor's configuration file. FormatError naming the file, also if it has none.
std::vector<series::AlertRule> read_rules_file(const std::string& path, std::vector<std::string>& warnings);

/// NAME or NAME:THRESHOLD each. UsageError for anything else.
std::vector<series::AlertRule> parse_rules(const std::vector<std::string>& words);

}  // namespace msprobe::monitor
