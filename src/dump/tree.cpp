// SPDX-License-Identifier: Apache-2.0
#include "dump/tree.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>

#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/text.hpp"

namespace msprobe::dump {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDumpJson = "dump.json";
constexpr std::string_view kDebugJson = "debug.json";

/// The number behind `prefix`, written without leading zeros.
std::optional<std::int64_t> number_after(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  if (name.empty() || (name.size() > 1 && name.front() == '0') || name.front() == '-') return std::nullopt;
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return number;
}

bool is_proc(std::string_view name) {
  return name.size() > 4 && name.starts_with("proc") &&
         name.find_first_not_of("0123456789", 4) == std::string_view::npos;
}

/// dump.json, unless there is only a debug.json.
std::string json_in(const std::string& directory) {
  std::string dump = directory + "/" + std::string(kDumpJson);
  std::string debug = directory + "/" + std::string(kDebugJson);
  std::error_code ignored;
  return !fs::exists(dump, ignored) && fs::exists(debug, ignored) ? debug : dump;
}

RankDump rank_in(const std::string& directory, std::string label) {
  RankDump rank;
  rank.number = rank_number(label);
  rank.label = std::move(label);
  rank.directory = directory;
  rank.json = json_in(directory);
  return rank;
}

std::vector<RankDump> ranks_in(const std::string& step) {
  std::vector<RankDump> ranks;
  std::vector<RankDump> procs;
  for (std::string& name : names_in(step, Named::folders)) {
    const std::string directory = step + "/" + name;
    if (rank_number(name)) {
      ranks.push_back(rank_in(directory, std::move(name)));
    } else if (is_proc(name)) {
      procs.push_back(rank_in(directory, std::move(name)));
    }
  }
  std::stable_sort(ranks.begin(), ranks.end(),
                   [](const RankDump& a, const RankDump& b) { return a.number < b.number; });
  if (!ranks.empty()) return ranks;
  if (procs.size() > 1) {
    throw FormatError(display(step),
                      "several proc folders and no rank folder: cannot tell which one to take");
  }
  return procs;
}

std::string without_trailing_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

}  // namespace

std::optional<std::int64_t> rank_number(std::string_view folder) {
  if (folder == "rank") return -1;
  return number_after(folder, "rank");
}

bool is_debug_json(const std::string& path) {
  return fs::path(path).filename() == kDebugJson;
}

Tree discover(const std::string& given) {
  Tree tree;
  tree.path = without_trailing_slashes(given);
  std::error_code error;
  const fs::file_status status = fs::status(tree.path, error);
  if (!fs::exists(status)) {
    throw IoError(display(tree.path), error ? error.message() : "no such file or directory");
  }
  if (!fs::is_directory(status)) {
    const std::string directory = fs::path(tree.path).parent_path().string();
    RankDump rank;
    rank.directory = directory.empty() ? "." : directory;
    rank.json = tree.path;
    tree.steps.push_back({"", std::nullopt, {std::move(rank)}});
    return tree;
  }
  if (fs::exists(json_in(tree.path), error)) {
    tree.kind = TreeKind::rank;
    std::string name = fs::path(tree.path).filename().string();
    if (!rank_number(name) && !is_proc(name)) name.clear();
    tree.steps.push_back({"", std::nullopt, {rank_in(tree.path, std::move(name))}});
    return tree;
  }
  if (std::vector<RankDump> ranks = ranks_in(tree.path); !ranks.empty()) {
    tree.kind = TreeKind::step;
    tree.steps.push_back({"", std::nullopt, std::move(ranks)});
    return tree;
  }
  tree.kind = TreeKind::root;
  for (std::string& name : names_in(tree.path, Named::folders)) {
    const auto number = number_after(name, "step");
    if (!number) continue;
    std::vector<RankDump> ranks = ranks_in(tree.path + "/" + name);
    if (!ranks.empty()) tree.steps.push_back({std::move(name), number, std::move(ranks)});
  }
  if (tree.steps.empty()) {
    throw FormatError(display(tree.path), "no dump here: neither dump.json, nor rank, proc or step folders");
  }
  std::stable_sort(tree.steps.begin(), tree.steps.end(),
                   [](const StepDump& a, const StepDump& b) { return a.number < b.number; });
  return tree;
}

}  // namespace msprobe::dump
