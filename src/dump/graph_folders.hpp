// SPDX-License-Identifier: Apache-2.0
// Where a static-graph dump of MindSpore has its data: folders of `.npy` files or with a statistic.csv, the
// rank and the step in their paths (spec/dump-format.md 1.7).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace msprobe::dump {

/// Rank and step.
using GraphPlace = std::pair<std::int64_t, std::int64_t>;
/// The folders of each, sorted by name.
using GraphFolders = std::map<GraphPlace, std::vector<std::string>>;

struct GraphSearch {
  GraphFolders folders;
  std::string problem;      // why they are not all of them, in one line; `folders` is empty then
  bool unreadable = false;  // the system refused
};

/// The step is the last part of a folder's path; the rank the fourth-last, `rank_3` or `3`, or the third-last
/// if that is a number and the fourth-last is none. Folders whose path tells neither are left out. Each folder
/// is listed once; more than kMaxGraphDepth levels or kMaxGraphFolders folders are a problem.
GraphSearch find_graph_folders(const std::string& root);

/// Rank and step of a path, as find_graph_folders() reads them.
std::optional<GraphPlace> graph_place(std::string_view path);

inline constexpr int kMaxGraphDepth = 10;
inline constexpr std::size_t kMaxGraphFolders = 200'000;

}  // namespace msprobe::dump
