// SPDX-License-Identifier: Apache-2.0
#include "anomaly/input.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <system_error>

#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/log.hpp"
#include "support/text.hpp"

namespace msprobe::anomaly {
namespace {

namespace fs = std::filesystem;

/// The number behind `prefix`, leading zeros allowed.
std::optional<std::int64_t> number_after(std::string_view name, std::string_view prefix) {
  if (!name.starts_with(prefix)) return std::nullopt;
  name.remove_prefix(prefix.size());
  if (name.empty() || name.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  std::int64_t number = 0;
  if (std::from_chars(name.data(), name.data() + name.size(), number).ec != std::errc()) return std::nullopt;
  return number;
}

/// The rank that a folder given by itself is of; 0 if its name does not say.
std::int64_t rank_of_folder(const std::string& path) {
  std::error_code error;
  fs::path folder = fs::absolute(path, error).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  return number_after(folder.filename().string(), "rank").value_or(0);
}

RankInput rank_at(const std::string& directory, std::int64_t number) {
  RankInput rank;
  rank.number = number;
  rank.directory = directory;
  rank.json = directory + "/dump.json";
  return rank;
}

std::vector<RankInput> ranks_in(const std::string& step, bool python) {
  const std::vector<std::string> names = names_in(step);
  std::vector<RankInput> ranks;
  std::vector<std::string> processes;
  for (const std::string& name : names) {
    const auto number = name == "rank" ? std::optional<std::int64_t>(0) : number_after(name, "rank");
    if (number) ranks.push_back(rank_at(step + "/" + name, *number));
    if (name.starts_with("proc")) processes.push_back(name);
  }
  if (ranks.empty() && processes.size() == 1 && (!python || names.size() == 1))
    return {rank_at(step + "/" + processes[0], 0)};
  if (ranks.empty() && processes.size() > 1 && !python) {
    throw FormatError(display(step),
                      "several proc folders and no rank folder: cannot tell which one to take");
  }
  std::stable_sort(ranks.begin(), ranks.end(),
                   [](const RankInput& a, const RankInput& b) { return a.number < b.number; });
  const auto twice =
      std::adjacent_find(ranks.begin(), ranks.end(),
                         [](const RankInput& a, const RankInput& b) { return a.number == b.number; });
  if (twice != ranks.end()) {
    throw FormatError(display(step),
                      "two folders of one rank: " + display(fs::path(twice->directory).filename().string()) +
                          " and " + display(fs::path((twice + 1)->directory).filename().string()));
  }
  return ranks;
}

}  // namespace

std::vector<StepInput> resolve_input(const std::string& given, bool python) {
  std::string path = given;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (!fs::exists(status))
    throw IoError(display(path), error ? error.message() : "no such file or directory");
  if (!fs::is_directory(status)) {
    if (python) throw IoError(display(path), "is not a folder");
    std::string directory = fs::path(path).parent_path().string();
    if (directory.empty()) directory = ".";
    RankInput rank = rank_at(directory, rank_of_folder(directory));
    rank.json = path;
    return {{"", rank.directory, {std::move(rank)}}};
  }
  if (!python && fs::exists(path + "/dump.json", error)) {
    return {{"", path, {rank_at(path, rank_of_folder(path))}}};
  }
  std::vector<RankInput> ranks = ranks_in(path, python);
  if (!ranks.empty() || python) return {{"", path, std::move(ranks)}};

  std::vector<std::pair<std::int64_t, StepInput>> steps;
  for (const std::string& name : names_in(path)) {
    const auto number = number_after(name, "step");
    const std::string directory = path + "/" + name;
    if (!number || !fs::is_directory(directory, error)) continue;
    ranks = ranks_in(directory, false);
    if (!ranks.empty()) steps.push_back({*number, {name, directory, std::move(ranks)}});
  }
  if (steps.empty())
    throw FormatError(display(path), "no dump here: neither dump.json, nor rank, proc or step folders");
  std::stable_sort(steps.begin(), steps.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<StepInput> result;
  for (auto& [number, step] : steps) result.push_back(std::move(step));
  return result;
}

}  // namespace msprobe::anomaly
