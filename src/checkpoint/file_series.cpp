// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/file_series.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <charconv>
#include <map>
#include <utility>

namespace msprobe::checkpoint {
namespace {

constexpr std::int64_t kMostFiles = 1 << 20;

/// The number that starts at `at`, and the position after it.
std::optional<std::pair<std::int64_t, std::size_t>> digits_at(std::string_view text, std::size_t at) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), value);
  if (error != std::errc{} || text[at] == '-' || value > kMostFiles) return {};
  return std::pair{value, static_cast<std::size_t>(end - text.data())};
}

/// Parses `-00002-of-00005`.
std::optional<SeriesPlace> piece_of(std::string_view name) {
  const std::size_t of = name.find("-of-");
  if (of == std::string_view::npos) return {};
  const std::size_t dash = name.rfind('-', of - 1);
  if (of == 0 || dash == std::string_view::npos || dash + 1 == of) return {};
  const auto number = digits_at(name, dash + 1);
  const std::size_t behind = of + std::string_view("-of-").size();
  const auto count = behind < name.size() ? digits_at(name, behind) : std::nullopt;
  if (!number || number->second != of || !count) return {};
  std::string head(name.substr(0, dash));
  // Several files may hold parts of one piece; the number of the part comes before.
  constexpr std::string_view kShard = "shard-";
  if (head.starts_with(kShard)) {
    const auto shard = digits_at(head, kShard.size());
    if (shard) head.replace(kShard.size(), shard->second - kShard.size(), "*");
  }
  return SeriesPlace{head + "-#" + std::string(name.substr(count->second)), number->first, count->first,
                     false};
}

/// Parses `rank_3`, `rank3` or `rank-3`, with or without `world_size_8` before it.
std::optional<SeriesPlace> rank_of(std::string_view name) {
  constexpr std::string_view kRank = "rank";
  constexpr std::string_view kWorld = "world_size_";
  const std::size_t at = name.rfind(kRank);
  if (at == std::string_view::npos) return {};
  std::size_t digits = at + kRank.size();
  if (digits < name.size() && (name[digits] == '_' || name[digits] == '-')) ++digits;
  const auto number = digits < name.size() ? digits_at(name, digits) : std::nullopt;
  if (!number) return {};
  SeriesPlace place;
  place.stem = std::string(name.substr(0, digits)) + "#" + std::string(name.substr(number->second));
  place.number = number->first;
  place.ranks = true;
  if (const std::size_t world = name.find(kWorld); world < at && world + kWorld.size() < name.size()) {
    if (const auto count = digits_at(name, world + kWorld.size())) place.count = count->first;
  }
  return place;
}

}  // namespace

std::optional<SeriesPlace> series_place(std::string_view name) {
  auto place = piece_of(name);
  return place ? place : rank_of(name);
}

std::vector<FileSeries> series_among(const std::vector<std::string>& names) {
  std::map<std::string, std::map<std::int64_t, std::pair<std::string, SeriesPlace>>> by_stem;
  for (const std::string& name : names) {
    if (auto place = series_place(name)) {
      const std::string key = place->stem + "/" + std::to_string(place->count.value_or(0));
      by_stem[key].emplace(place->number, std::pair{name, *place});
    }
  }
  std::vector<FileSeries> all;
  for (auto& [stem, members] : by_stem) {
    FileSeries& series = all.emplace_back();
    series.place = members.begin()->second.second;
    const std::int64_t first = series.place.ranks ? 0 : 1;
    const std::int64_t last = series.place.count ? *series.place.count - 1 + first : members.rbegin()->first;
    std::int64_t expected = first;
    for (auto& [number, member] : members) {
      for (; expected < number && series.missing.size() < FileSeries::kMostMissing; ++expected)
        series.missing.push_back(expected);
      expected = number + 1;
      series.files.push_back(std::move(member.first));
    }
    for (; expected <= last && series.missing.size() < FileSeries::kMostMissing; ++expected)
      series.missing.push_back(expected);
  }
  return all;
}

std::string missing_text(const FileSeries& series) {
  if (series.missing.empty()) return {};
  const bool many = series.missing.size() == FileSeries::kMostMissing;
  const bool one = series.missing.size() == 1;
  std::string text = fmt::format("{}{} {}{}", series.place.ranks ? "rank" : "number", one ? "" : "s",
                                 fmt::join(series.missing, ", "), many ? " and perhaps more" : "");
  if (series.place.count) text += fmt::format(" of {}", *series.place.count);
  return text + (one ? " is missing" : " are missing");
}

}  // namespace msprobe::checkpoint
