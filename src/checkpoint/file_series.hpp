// SPDX-License-Identifier: Apache-2.0
// Finds files that belong together by their names: `model-00002-of-00005.safetensors`,
// `model_world_size_8_rank_3.pt`.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace msprobe::checkpoint {

/// A file's place in its series.
struct SeriesPlace {
  std::string stem;  // the common part of all names, with a mark in the place of the number
  std::int64_t number = 0;
  std::optional<std::int64_t> count;  // how many there are, if the name says so
  bool ranks = false;                 // one per rank, numbered from 0; else pieces, numbered from 1
};

std::optional<SeriesPlace> series_place(std::string_view name);

struct FileSeries {
  SeriesPlace place;  // of its first file
  std::vector<std::string> files;
  std::vector<std::int64_t> missing;  // numbers, the first kMostMissing
  static constexpr std::size_t kMostMissing = 5;
};

/// The series among the names, in the order of their stems; files by their numbers.
std::vector<FileSeries> series_among(const std::vector<std::string>& names);

/// "numbers 2, 3 of 8 are missing"; empty if the series is complete.
std::string missing_text(const FileSeries& series);

}  // namespace msprobe::checkpoint
