// SPDX-License-Identifier: Apache-2.0
// `msprobe data2db`: dumps and monitors' csv files as data bases of trends.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace msprobe {
class Progress;
}

namespace msprobe::monitor {

/// Replaced in every name, one after the other.
using NameMapping = std::vector<std::pair<std::string, std::string>>;

struct TrendOptions {
  std::string input;
  std::string output;  // folder
  NameMapping mapping;
  bool micro_steps = true;  // a step of the data base is a micro step
};

struct TrendReport {
  std::string file;  // empty: there is none
  std::uint64_t rows = 0;
  std::vector<std::string> warnings;
  std::vector<std::string> problems;  // files that could not be read
};

/// Writes `monitor_data.trend.db` of the ranks' csv files; nothing where there are none or one cannot be
/// read.
TrendReport trend_of_monitor(const TrendOptions& options, Progress* progress);

/// Writes `dump_data.trend.db` of step{n}/rank{r} or step{n}/proc{p}; nothing where there are none or one
/// cannot be read.
TrendReport trend_of_dump(const TrendOptions& options, Progress* progress);

/// FormatError for anything but an object of texts.
NameMapping read_name_mapping(const std::string& path);

/// FormatError for a name that grows beyond measure.
std::string mapped_name(const NameMapping& mapping, std::string_view name);

}  // namespace msprobe::monitor
