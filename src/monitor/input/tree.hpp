// SPDX-License-Identifier: Apache-2.0
// What a training monitor left in a folder: the folders of its ranks, and their csv files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace msprobe::monitor {

struct SeriesFile {
  std::string path;
  std::string prefix;      // what it holds: actv, grad_reduced, module, ...
  std::int64_t begin = 0;  // steps of its name, both inclusive
  std::int64_t end = 0;
};

struct RankFolder {
  std::int64_t rank = 0;
  std::string path;
  std::string time;               // of its name (Jan01_00-00-00); empty in the layout of the second monitor
  std::vector<SeriesFile> files;  // by prefix, then by steps

  /// Different ones, in order.
  std::vector<std::string> prefixes() const;
};

struct Tree {
  std::vector<RankFolder> ranks;  // by number
  std::vector<std::string> warnings;
};

/// Closed range of the times in the folders' names.
struct TimeRange {
  std::string from;  // empty: no limit
  std::string to;
};

/// Seconds since the beginning of a leap year that a time as in a folder's name (Jan01_00-00-00) says, or
/// nothing.
std::optional<std::int64_t> folder_time(std::string_view text);

/// The ranks below `folder`, in either layout; `folder` may be one rank's, too. Of several folders of a rank
/// the one whose files are newest is taken, which a warning tells. IoError if it cannot be listed,
/// FormatError if there is no rank.
Tree find_tree(const std::string& folder, const TimeRange& times = {});

}  // namespace msprobe::monitor
