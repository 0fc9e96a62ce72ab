// SPDX-License-Identifier: Apache-2.0
// `msprobe data2db`: converts dumps and monitors' csv files to databases of trends.
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

/// The replacements for every name, applied one after the other.
using NameMapping = std::vector<std::pair<std::string, std::string>>;

struct TrendOptions {
  std::string input;
  std::string output;  // folder
  NameMapping mapping;
  bool micro_steps = true;  // a step of the database is a micro step
};

struct TrendReport {
  std::string file;  // empty: no database was written
  std::uint64_t rows = 0;
  std::vector<std::string> warnings;
  std::vector<std::string> problems;  // files that could not be read
};

/// Writes `monitor_data.trend.db` from the ranks' csv files. Writes nothing if there are no such files or one
/// cannot be read.
TrendReport trend_of_monitor(const TrendOptions& options, Progress* progress);

/// Writes `dump_data.trend.db` from step{n}/rank{r} or step{n}/proc{p}. Writes nothing if there are no such
/// folders or one cannot be read.
TrendReport trend_of_dump(const TrendOptions& options, Progress* progress);

/// FormatError for anything but an object whose values are texts.
NameMapping read_name_mapping(const std::string& path);

/// FormatError if the name grows too long.
std::string mapped_name(const NameMapping& mapping, std::string_view name);

}  // namespace msprobe::monitor
