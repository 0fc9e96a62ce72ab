// SPDX-License-Identifier: Apache-2.0
#include "anomaly/input.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

#include "dump/tree.hpp"
#include "dump/tree_everywhere.hpp"
#include "support/error.hpp"
#include "support/text.hpp"

namespace msprobe::anomaly {
namespace {

namespace fs = std::filesystem;

std::optional<std::int64_t> rank_number(std::string_view folder) {
  const auto number = dump::rank_number(folder, dump::RankNames::zeros);
  return number ? std::optional(std::max<std::int64_t>(*number, 0)) : number;
}

/// The rank that a folder given by itself is of; 0 if its name does not say.
std::int64_t rank_of_folder(const std::string& path) {
  std::error_code error;
  fs::path folder = fs::absolute(path, error).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();
  return rank_number(folder.filename().string()).value_or(0);
}

RankInput rank_at(const std::string& directory, std::int64_t number) {
  RankInput rank;
  rank.number = number;
  rank.directory = directory;
  rank.json = directory + "/dump.json";  // values saved by name (debug.json) have no order of execution
  return rank;
}

/// Sorts them by number, which no two of them may share.
void sort_ranks(std::vector<RankInput>& ranks) {
  std::ranges::stable_sort(ranks, [](const RankInput& a, const RankInput& b) { return a.number < b.number; });
  const auto twice =
      std::adjacent_find(ranks.begin(), ranks.end(),
                         [](const RankInput& a, const RankInput& b) { return a.number == b.number; });
  if (twice == ranks.end()) return;
  const fs::path first(twice->directory);
  throw FormatError(display(first.parent_path().string()),
                    "two folders for the same rank: " + display(first.filename().string()) + " and " +
                        display(fs::path((twice + 1)->directory).filename().string()));
}

}  // namespace

std::vector<StepInput> resolve_input(const std::string& path, bool local) {
  std::vector<StepInput> steps;
  const dump::Tree tree = local ? dump::discover_everywhere(path, dump::RankNames::zeros, false)
                                : dump::discover(path, dump::RankNames::zeros);
  const bool by_itself = tree.kind == dump::TreeKind::file || tree.kind == dump::TreeKind::rank;
  for (const dump::StepDump& step : tree.steps) {
    StepInput& input = steps.emplace_back();
    input.label = step.label;
    for (const dump::RankDump& rank : step.ranks) {
      const std::int64_t number = std::max<std::int64_t>(rank.number.value_or(0), 0);
      input.ranks.push_back(rank_at(rank.directory, by_itself ? rank_of_folder(rank.directory) : number));
      if (tree.kind == dump::TreeKind::file) input.ranks.back().json = rank.json;
      if (!rank.seen) continue;
      input.ranks.back().processes = rank.seen->processes;
      input.ranks.back().bytes = rank.seen->bytes;
    }
  }
  for (StepInput& step : steps) sort_ranks(step.ranks);
  return steps;
}

}  // namespace msprobe::anomaly
