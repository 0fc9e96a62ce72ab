// SPDX-License-Identifier: Apache-2.0
// Finds the output of a training monitor in a folder: the folders of its ranks, and their csv files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace msprobe::monitor {

struct SeriesFile {
  std::string path;
  std::string prefix;      // the kind of content: actv, grad_reduced, module, ...
  std::int64_t begin = 0;  // the steps in its name, both inclusive
  std::int64_t end = 0;
};

struct RankFolder {
  std::int64_t rank = 0;
  std::string path;
  std::string time;               // from its name (Jan01_00-00-00); empty in the layout of the second monitor
  std::vector<SeriesFile> files;  // by prefix, then by steps

  /// The different prefixes of the files, in order.
  std::vector<std::string> prefixes() const;
};

struct MonitorTree {
  std::vector<RankFolder> ranks;  // by number
  std::vector<std::string> warnings;
};

/// A closed range of the times in the folders' names.
struct TimeRange {
  std::string from;  // empty: no limit
  std::string to;
};

/// The time in a folder's name (Jan01_00-00-00) as seconds since the beginning of a leap year, or nothing if
/// the text is not such a time.
std::optional<std::int64_t> folder_time(std::string_view text);

/// The ranks below `folder`, in either layout; `folder` may also be the folder of one rank. If a rank has
/// several folders, the one with the newest files is taken, with a warning. IoError if `folder` cannot be
/// listed, FormatError if it has no rank.
MonitorTree find_tree(const std::string& folder, const TimeRange& times = {});

}  // namespace msprobe::monitor
