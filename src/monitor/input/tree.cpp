// SPDX-License-Identifier: Apache-2.0
#include "monitor/input/tree.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <system_error>
#include <tuple>
#include <utility>

#include "dump/tree.hpp"
#include "support/ascii.hpp"
#include "support/error.hpp"
#include "support/folder.hpp"
#include "support/text.hpp"

namespace msprobe::monitor {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostRankDigits = 5;
constexpr std::size_t kMostTimeLetters = 20;

std::string_view digits_at(std::string_view text, std::size_t at) {
  const std::size_t end = text.find_first_not_of("0123456789", at);
  return text.substr(at, std::min(end, text.size()) - at);
}

struct FolderName {
  std::int64_t rank = 0;
  std::string time;
};

bool is_time_letter(char c) {
  return c == '-' || c == '_' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/// `Jan01_00-00-00-rank0-0a1b2c3d` or `rank_0`.
std::optional<FolderName> parse_folder_name(std::string_view name) {
  constexpr std::string_view kRank = "rank_";
  if (name.starts_with(kRank)) {
    const auto rank = dump::number_after(name, kRank);
    if (!rank || name.size() > kRank.size() + kMostRankDigits) return std::nullopt;
    return FolderName{*rank, {}};
  }
  constexpr std::string_view kBetween = "-rank";
  for (std::size_t at = name.find(kBetween); at <= kMostTimeLetters; at = name.find(kBetween, at + 1)) {
    const std::string_view time = name.substr(0, at);
    const std::string_view digits = digits_at(name, at + kBetween.size());
    const std::size_t behind = at + kBetween.size() + digits.size();
    if (digits.empty() || digits.size() > kMostRankDigits || behind >= name.size() || name[behind] != '-')
      continue;
    if (!std::ranges::all_of(time, is_time_letter)) continue;
    return FolderName{*dump::number_after(digits, ""), std::string(time)};
  }
  return std::nullopt;
}

/// `{prefix}_{a}-{b}.csv` or `{prefix}_step{a}-{b}.csv`.
std::optional<SeriesFile> parse_file_name(std::string_view name) {
  constexpr std::string_view kEnding = ".csv";
  constexpr std::string_view kStep = "step";
  if (!name.ends_with(kEnding)) return std::nullopt;
  name.remove_suffix(kEnding.size());
  const std::size_t bar = name.rfind('_');
  if (bar == std::string_view::npos || bar == 0) return std::nullopt;
  std::string_view steps = name.substr(bar + 1);
  if (steps.starts_with(kStep)) steps.remove_prefix(kStep.size());
  const std::size_t dash = steps.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto begin = dump::number_after(steps.substr(0, dash), "");
  const auto end = dump::number_after(steps.substr(dash + 1), "");
  if (!begin || !end) return std::nullopt;
  return SeriesFile{{}, std::string(name.substr(0, bar)), *begin, *end};
}

std::vector<SeriesFile> files_in(const std::string& folder) {
  std::vector<SeriesFile> files;
  for (const std::string& name : names_in(folder, WhichNames::regular_files)) {
    std::optional<SeriesFile> file = parse_file_name(name);
    if (!file) continue;
    file->path = folder + (folder.ends_with('/') ? "" : "/") + name;
    files.push_back(*std::move(file));
  }
  std::ranges::stable_sort(files, [](const SeriesFile& a, const SeriesFile& b) {
    return std::tie(a.prefix, a.begin, a.end) < std::tie(b.prefix, b.begin, b.end);
  });
  return files;
}

/// When a file of the folder was written last.
fs::file_time_type last_write(const RankFolder& folder) {
  fs::file_time_type newest = fs::file_time_type::min();
  std::error_code error;
  const auto look = [&](const std::string& path) {
    const fs::file_time_type time = fs::last_write_time(path, error);
    if (!error) newest = std::max(newest, time);
  };
  for (const SeriesFile& file : folder.files) look(file.path);
  if (folder.files.empty()) look(folder.path);
  return newest;
}

std::string base_name(const std::string& folder) {
  std::error_code error;
  const fs::path whole = fs::weakly_canonical(folder, error);
  return error ? std::string() : whole.filename().string();
}

/// Is a folder of that name in the range? Names without a readable time are taken only if there is no limit.
class TimeFilter {
 public:
  explicit TimeFilter(const TimeRange& range) : from_(limit(range.from)), to_(limit(range.to)) {
    if (from_ && to_ && *from_ > *to_)
      throw UsageError("the range of times begins (" + display(range.from) + ") after its end (" +
                       display(range.to) + ")");
  }

  bool takes(const std::string& name_time) const {
    if (!from_ && !to_) return true;
    const auto time = folder_time(name_time);
    return time && (!from_ || *time >= *from_) && (!to_ || *time <= *to_);
  }

 private:
  static std::optional<std::int64_t> limit(const std::string& text) {
    if (text.empty()) return std::nullopt;
    const auto time = folder_time(text);
    if (!time) throw UsageError("'" + display(text) + "' is not a time such as Jan01_00-00-00");
    return time;
  }

  std::optional<std::int64_t> from_;
  std::optional<std::int64_t> to_;
};

RankFolder open_rank(const std::string& path, FolderName name) {
  return {name.rank, path, std::move(name.time), files_in(path)};
}

}  // namespace

std::vector<std::string> RankFolder::prefixes() const {
  std::vector<std::string> names;
  for (const SeriesFile& file : files) {
    if (names.empty() || names.back() != file.prefix) names.push_back(file.prefix);
  }
  return names;
}

std::optional<std::int64_t> folder_time(std::string_view text) {
  constexpr std::string_view kPattern = "Mon00_00-00-00";
  constexpr std::array<std::string_view, 12> kMonths = {"jan", "feb", "mar", "apr", "may", "jun",
                                                        "jul", "aug", "sep", "oct", "nov", "dec"};
  constexpr std::array<int, 12> kDays = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  if (text.size() != kPattern.size()) return std::nullopt;
  const std::string month = lower_case(text.substr(0, 3));
  const auto found = std::find(kMonths.begin(), kMonths.end(), month);
  if (found == kMonths.end()) return std::nullopt;
  std::array<std::int64_t, 4> parts{};  // day, hour, minute, second
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t at = 3 + 3 * i;
    const auto part = dump::number_after(digits_at(text.substr(0, at + 2), at), "");
    if (!part || (i > 0 && text[at - 1] != kPattern[at - 1])) return std::nullopt;
    parts[i] = *part;
  }
  const auto number = static_cast<std::size_t>(found - kMonths.begin());
  if (parts[0] < 1 || parts[0] > kDays[number] || parts[1] > 23 || parts[2] > 59 || parts[3] > 61)
    return std::nullopt;
  std::int64_t days = parts[0] - 1;
  for (std::size_t i = 0; i < number; ++i) days += kDays[i];
  return ((days * 24 + parts[1]) * 60 + parts[2]) * 60 + parts[3];
}

MonitorTree find_tree(const std::string& folder, const TimeRange& times) {
  MonitorTree tree;
  const TimeFilter filter(times);
  std::map<std::int64_t, std::vector<RankFolder>> found;
  bool any = false;
  for (const std::string& name : names_in(folder, WhichNames::folders)) {
    std::optional<FolderName> parsed = parse_folder_name(name);
    if (!parsed) continue;
    any = true;
    if (!filter.takes(parsed->time)) continue;
    const std::int64_t rank = parsed->rank;
    found[rank].push_back(open_rank(folder + (folder.ends_with('/') ? "" : "/") + name, *std::move(parsed)));
  }
  if (!any) {
    std::optional<FolderName> parsed = parse_folder_name(base_name(folder));
    if (parsed && filter.takes(parsed->time)) found[parsed->rank].push_back(open_rank(folder, *parsed));
    any = parsed.has_value();
  }
  if (found.empty()) {
    throw FormatError(display(folder), any ? "no rank folder has a time in the range"
                                           : "has no output of a training monitor (TIME-rank0-ID or rank_0)");
  }
  for (auto& [rank, folders] : found) {
    // Equal file times (a copied tree) leave the last name.
    std::size_t newest = 0;
    for (std::size_t i = 1; i < folders.size(); ++i) {
      if (last_write(folders[i]) >= last_write(folders[newest])) newest = i;
    }
    if (folders.size() > 1)
      tree.warnings.push_back("rank " + std::to_string(rank) + " has " + std::to_string(folders.size()) +
                              " folders; " + display(folders[newest].path) +
                              ", with the newest files, is used");
    tree.ranks.push_back(std::move(folders[newest]));
  }
  return tree;
}

}  // namespace msprobe::monitor
