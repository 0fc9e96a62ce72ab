// SPDX-License-Identifier: Apache-2.0
// Finds the ranks and steps of a dump on disk (docs/formats.md, "The dump tree").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "support/folder.hpp"

namespace msprobe::dump {

/// The processes that see a rank whose dump is on the local disk of a machine, and its size.
struct SeenRank {
  std::vector<std::uint32_t> processes;
  std::string host;              // of the first
  std::uint64_t bytes = 0;       // of the dump.json
  std::uint64_t content = 0;     // a hash of its beginning
  std::uint64_t data_bytes = 0;  // about how many
  bool saved_values = false;     // a debug.json is beside it
};

/// One folder with a dump.json, or else a debug.json (or one such file given by name).
struct RankDump {
  std::string label;  // "rank0", also of a proc folder; "rank"; empty for a file or folder of another name
  std::optional<std::int64_t> number;  // 0 of rank0; -1 of plain "rank"; nothing for proc folders and files
  std::string directory;
  std::string json;  // path of the file; it need not exist when the folder came from a listing
  std::optional<SeenRank> seen = {};  // nothing: all processes see it
};

struct StepDump {
  std::string label;  // "step0"; empty unless the tree is a dump root
  std::optional<std::int64_t> number;
  std::vector<RankDump> ranks;  // by number
};

enum class TreeKind { file, rank, step, root };

struct Tree {
  TreeKind kind = TreeKind::file;
  std::string path;
  std::vector<StepDump> steps;  // by number; exactly one unless kind is root
};

/// The form of the names of rank folders.
enum class RankNames : std::uint8_t {
  exact,  // `rank12` and `rank`, as every collector does, and as the Python tool's compare takes them
  zeros,  // `rank012` too, as its nan_analyze does
};

/// The result of a search.
struct SearchOutcome {
  std::string problem;      // why nothing or not everything was found; one line with the path
  bool unreadable = false;  // the system refused

  /// Notes the problem of a path.
  void refuse(const std::string& path, const std::string& reason, bool by_system);
  /// IoError or FormatError if there is a problem.
  void check() const;
};

struct TreeSearch : SearchOutcome {
  std::optional<Tree> tree;
  bool is_folder = false;
  Listing top;  // what is in it
};

/// Looks for a tree: a dump.json, the folder of a rank (holds dump.json or debug.json), a step (holds rank or
/// proc folders) or a dump root (holds step folders). A step without ranks that has several proc folders is
/// not a tree. Lists the folder and the folders of its steps once each.
TreeSearch search_tree(const std::string& path, RankNames names = RankNames::exact);

/// The same for code that needs a tree. IoError if the path does not exist or cannot be listed, FormatError
/// if it has no tree.
Tree discover(const std::string& path, RankNames names = RankNames::exact);

/// Whether the path holds values that were saved by name, because the file is called debug.json.
bool is_debug_json(const std::string& path);

/// "rank12" -> 12, "rank" -> -1, anything else -> nothing.
std::optional<std::int64_t> rank_number(std::string_view folder, RankNames names = RankNames::exact);

/// The number after `prefix`, which must be digits only.
std::optional<std::int64_t> number_after(std::string_view name, std::string_view prefix);

}  // namespace msprobe::dump
