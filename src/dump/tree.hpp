// SPDX-License-Identifier: Apache-2.0
// Finds the ranks and steps of a dump on disk (spec/dump-format.md 1.1).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace msprobe::dump {

/// One folder with a dump.json, or else a debug.json (or one such file given by name).
struct RankDump {
  std::string label;  // "rank0", "proc123", "rank"; empty for a file or folder of another name
  std::optional<std::int64_t> number;  // 0 of rank0; -1 of plain "rank"; nothing for proc folders and files
  std::string directory;
  std::string json;  // path of the file; it need not exist when the folder came from a listing
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

/// Tells what `path` is: a dump.json, the folder of a rank (holds dump.json or debug.json), a step (holds rank or proc
/// folders) or a dump root (holds step folders). IoError if it does not exist or cannot be listed;
/// FormatError if it is none of these, or if a step without ranks has several proc folders.
Tree discover(const std::string& path);

/// Holds this path values that were saved by name: is the file called debug.json?
bool is_debug_json(const std::string& path);

/// "rank12" -> 12, "rank" -> -1, anything else (rank01 too) -> nothing.
std::optional<std::int64_t> rank_number(std::string_view folder);

}  // namespace msprobe::dump
