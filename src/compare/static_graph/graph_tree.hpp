// SPDX-License-Identifier: Apache-2.0
// Where a static-graph dump of MindSpore has its data: folders of `.npy` files or with a statistic.csv, the
// rank and the step in their paths.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace msprobe::compare {

/// Numbers and ranges as they are typed: `0,2-5`. Holds every number if it is empty.
class NumberList {
 public:
  /// UsageError naming the option for anything else.
  static NumberList parse(std::string_view option, std::string_view text);
  void add(std::int64_t first, std::int64_t last) { ranges_.emplace_back(first, last); }
  bool contains(std::int64_t number) const;
  bool empty() const { return ranges_.empty(); }

 private:
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges_;
};

/// Which parts of a static-graph dump to compare.
struct GraphSelection {
  NumberList ranks;
  NumberList steps;
};

/// Rank and step.
using GraphPlace = std::pair<std::int64_t, std::int64_t>;
/// The folders of each, sorted by name.
using GraphFolders = std::map<GraphPlace, std::vector<std::string>>;

/// The step is the last part of a folder's path; the rank the fourth-last, `rank_3` or `3`, or the third-last
/// if that is a number and the fourth-last is none. Folders whose path tells neither are left out. IoError if
/// a folder cannot be listed, FormatError beyond kMaxGraphDepth levels or
/// kMaxGraphFolders folders.
GraphFolders find_graph_folders(const std::string& root, const GraphSelection& selection);

/// Are there folders of a static-graph dump below `root`? Never throws.
bool is_graph_dump(const std::string& root);

/// Rank and step of a path, as find_graph_folders() reads them.
std::optional<GraphPlace> graph_place(std::string_view path);

inline constexpr int kMaxGraphDepth = 10;
inline constexpr std::size_t kMaxGraphFolders = 200'000;

}  // namespace msprobe::compare
