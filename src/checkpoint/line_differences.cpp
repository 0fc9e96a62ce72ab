// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/line_hash.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <vector>

#include "support/text.hpp"

namespace msprobe::checkpoint {
namespace {

/// Checks whether the lines that differ are all zeros, or all NaN, on one side.
class DeadLines {
 public:
  explicit DeadLines(std::int64_t length)
      : zeros_(hash_of_constant(0, length)),
        nans_(hash_of_constant(std::numeric_limits<double>::quiet_NaN(), length)) {}

  void add(std::uint64_t first, std::uint64_t second) {
    first_zero_ = first_zero_ && first == zeros_;
    second_zero_ = second_zero_ && second == zeros_;
    first_nan_ = first_nan_ && first == nans_;
    second_nan_ = second_nan_ && second == nans_;
  }
  std::string text() const {
    if (first_zero_) return ": 0 throughout in the first";
    if (second_zero_) return ": 0 throughout in the second";
    if (first_nan_) return ": NaN throughout in the first";
    if (second_nan_) return ": NaN throughout in the second";
    return {};
  }

 private:
  static std::uint64_t hash_of_constant(double value, std::int64_t length) {
    OrderedHash hash;
    const std::array one = {mixed(bits_of(value) + 1)};
    for (std::int64_t i = 0; i < length; ++i) hash.add_mixed(one);
    return hash.value();
  }

  std::uint64_t zeros_;
  std::uint64_t nans_;
  bool first_zero_ = true;
  bool second_zero_ = true;
  bool first_nan_ = true;
  bool second_nan_ = true;
};

std::string lines_text(const char* what, const std::vector<std::uint64_t>& first,
                       const std::vector<std::uint64_t>& second, std::int64_t length) {
  std::size_t count = 0;
  std::size_t begin = first.size();
  std::size_t end = 0;
  DeadLines dead(length);
  for (std::size_t i = 0; i < first.size(); ++i) {
    if (first[i] == second[i]) continue;
    ++count;
    begin = std::min(begin, i);
    end = i + 1;
    dead.add(first[i], second[i]);
  }
  if (count == 0 || count * 4 > first.size()) return {};
  std::string text;
  if (count == 1) {
    text = fmt::format("only elements of {} {}", what, begin);
  } else if (count == end - begin) {
    text = fmt::format("only {}s {} to {}", what, begin, end - 1);
  } else {
    text = fmt::format("only {} of {} {}s differ, the first of them {} {}", human_count(count),
                       human_count(first.size()), what, what, begin);
    return text + dead.text();
  }
  return text + " differ" + dead.text();
}

}  // namespace

std::string differing_lines(const LineHashes& first, const LineHashes& second, std::int64_t rows,
                            std::int64_t columns) {
  if (first.rows().size() < 2 || columns < 2) return {};
  std::string text = lines_text("row", first.rows(), second.rows(), columns);
  if (text.empty()) text = lines_text("column", first.columns(), second.columns(), rows);
  return text;
}

}  // namespace msprobe::checkpoint
