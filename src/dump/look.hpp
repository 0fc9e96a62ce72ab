// SPDX-License-Identifier: Apache-2.0
// What lies at a path that a user names.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dump/tree.hpp"

namespace msprobe::dump {

// Trees of arrays that were saved one by one: DIR/data/TAG/step0/rank0/[micro_step0/]*.npy
// (docs/formats.md, "Single saves").

/// step, rank, micro step, id
using SavedKey = std::array<std::int64_t, 4>;
/// The files of one tag.
using SavedArrays = std::map<SavedKey, std::string>;

struct SavedSearch : Search {
  std::map<std::string, SavedArrays> tags;  // empty if there is a problem
};

/// The arrays by tag; none if there is no folder `data`. Of files with equal keys the last by name counts.
/// Each folder is listed once.
SavedSearch find_saved_arrays(const std::string& root);

// Where a static-graph dump of MindSpore has its data: folders of `.npy` files or with a statistic.csv, the
// rank and the step in their paths (docs/formats.md, "Static graphs of MindSpore").

/// Rank and step.
using GraphPlace = std::pair<std::int64_t, std::int64_t>;
/// The folders of each, sorted by name.
using GraphFolders = std::map<GraphPlace, std::vector<std::string>>;

struct GraphSearch : Search {
  GraphFolders folders;  // empty if there is a problem
};

/// The step is the last part of a folder's path; the rank the fourth-last, `rank_3` or `3`, or the third-last
/// if that is a number and the fourth-last is none. Folders whose path tells neither are left out. Each
/// folder is listed once; more than kMaxGraphDepth levels or kMaxGraphFolders folders are a problem.
GraphSearch find_graph_folders(const std::string& root);

/// Rank and step of a path, as find_graph_folders() reads them.
std::optional<GraphPlace> graph_place(std::string_view path);

inline constexpr int kMaxGraphDepth = 10;
inline constexpr std::size_t kMaxGraphFolders = 200'000;

enum class Layout : std::uint8_t {
  none,
  tree,          // dump.json or debug.json: a file, a rank, a step or a dump root
  saved_arrays,  // data/TAG/step0/rank0/*.npy
  static_graph,  // folders with `.npy` files or a statistic.csv
};

struct Look {
  Layout layout = Layout::none;
  TreeSearch tree;    // its problem tells why the layout is none
  SavedSearch saved;  // looked for if there is no tree
  GraphSearch graph;  // looked for if there are no saved arrays either
};

/// Looks once, and at no more folders than the answer needs. Never throws but for Ctrl-C.
Look look_at(const std::string& path);

}  // namespace msprobe::dump
