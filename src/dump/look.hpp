// SPDX-License-Identifier: Apache-2.0
// Finds out what kind of dump is at a path that a user names.
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

struct SavedSearch : SearchOutcome {
  std::map<std::string, SavedArrays> tags;  // empty if there is a problem
};

/// The arrays by tag; empty without a folder `data`. If files have equal keys, the last by name counts. Lists
/// each folder once.
SavedSearch find_saved_arrays(const std::string& root);

// The data of a static-graph dump of MindSpore: folders of `.npy` files or with a statistic.csv, whose paths
// contain the rank and the step (docs/formats.md, "Static graphs of MindSpore").

/// Rank and step.
using GraphPlace = std::pair<std::int64_t, std::int64_t>;
/// The folders of each place, sorted by name.
using GraphFolders = std::map<GraphPlace, std::vector<std::string>>;

struct GraphSearch : SearchOutcome {
  GraphFolders folders;  // empty if there is a problem
};

/// The step is the last part of a folder's path. The rank is the fourth-last part, `rank_3` or `3`, or the
/// third-last if that is a number and the fourth-last is not one. Folders whose paths show neither are left
/// out. Lists each folder once; more than kMaxGraphDepth levels or kMaxGraphFolders folders are a problem.
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
  TreeSearch tree;    // its problem says why no layout was found
  SavedSearch saved;  // searched for if the path has no tree
  GraphSearch graph;  // searched for if it has no saved arrays either
};

/// Looks once, and at no more folders than the answer needs. Throws only at Ctrl-C.
Look look_at(const std::string& path);

}  // namespace msprobe::dump
