// SPDX-License-Identifier: Apache-2.0
#include "merge_result/inputs.hpp"

#include <algorithm>
#include <map>
#include <optional>

#include "support/ascii.hpp"
#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/text.hpp"

namespace msprobe::merge_result {
namespace {

constexpr std::string_view kPrefix = "compare_result_rank";
constexpr std::size_t kTimeDigits = 14;

struct ResultName {
  std::int64_t rank = 0;
  std::string time;
  bool workbook = false;
  std::uint64_t part = 0;
};

std::string_view leading_digits(std::string_view text) {
  return text.substr(0, std::min(text.find_first_not_of("0123456789"), text.size()));
}

/// Parses `rankN[-rankN]_TIME[_part_M]`.
std::optional<ResultName> parse_name(std::string_view name) {
  ResultName result;
  if (name.ends_with(".xlsx")) {
    result.workbook = true;
    name.remove_suffix(5);
  } else if (name.ends_with(".csv")) {
    name.remove_suffix(4);
  } else {
    return std::nullopt;
  }
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  const std::string_view rank = leading_digits(name);
  name.remove_prefix(rank.size());
  const std::string again = "-rank" + std::string(rank) + "_";
  if (name.starts_with(again)) name.remove_prefix(again.size() - 1);
  const auto number = whole_number<std::int64_t>(rank);
  if (!number || !name.starts_with('_')) return std::nullopt;
  result.rank = *number;
  name.remove_prefix(1);
  result.time = name.substr(0, std::min(kTimeDigits, name.size()));
  if (result.time.size() != kTimeDigits || !is_digits(result.time)) return std::nullopt;
  name.remove_prefix(kTimeDigits);
  constexpr std::string_view kPart = "_part_";
  if (!result.workbook && name.starts_with(kPart)) {
    const auto part = whole_number<std::uint64_t>(name.substr(kPart.size()));
    if (!part) return std::nullopt;
    result.part = *part;
    return result;
  }
  return name.empty() ? std::optional(result) : std::nullopt;
}

}  // namespace

MergeInputs find_inputs(const std::string& folder) {
  MergeInputs inputs;
  // Keys: rank, then time and kind of result (the last one counts), then part.
  std::map<std::int64_t, std::map<std::pair<std::string, bool>, std::map<std::uint64_t, std::string>>> found;
  for (const std::string& name : names_in(folder, WhichNames::regular_files)) {
    if (const auto result = parse_name(name)) {
      found[result->rank][{result->time, !result->workbook}][result->part] = folder + "/" + name;
    } else if (name.ends_with(".xlsx") || name.ends_with(".csv")) {
      inputs.warnings.push_back(display(name) + " is not a result of a single rank and was skipped");
    }
  }
  for (auto& [rank, results] : found) {
    const auto& [key, parts] = *results.rbegin();
    if (results.size() > 1) {
      inputs.warnings.push_back("rank" + std::to_string(rank) + " has several results; " +
                                display(parts.begin()->second) + " is used");
    }
    RankFiles& files = inputs.ranks.emplace_back();
    files.rank = rank;
    files.time = key.first;
    files.workbook = !key.second;
    for (const auto& [part, path] : parts) files.paths.push_back(path);
  }
  if (inputs.ranks.size() < 2) {
    std::string message =
        display(folder) + ": fewer than two ranks have a result (compare_result_rankN_TIME.csv or .xlsx)";
    // A comparison of whole dumps has a folder for each step.
    const std::string below =
        folder_below(folder, [](const std::string& file) { return parse_name(file).has_value(); });
    if (inputs.ranks.empty() && !below.empty()) message += "; the results of a step are in " + display(below);
    throw FormatError(message);
  }
  return inputs;
}

}  // namespace msprobe::merge_result
