// SPDX-License-Identifier: Apache-2.0
// The quantities that a training monitor records, by the names of its files and tags.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace msprobe::series {

struct Quantity {
  std::string_view name;
  std::string_view file;                           // prefix of its files
  std::string_view task;                           // last part of its tags
  bool has_micro_step = false;                     // always a column
  bool by_module = false;                          // rows of a module are adjacent
  std::span<const std::string_view> columns = {};  // its own ones; empty: the configured statistics
};

/// Returns null for an unknown quantity.
const Quantity* find_quantity(std::string_view name);

/// The statistics of a tensor, in the order of the manual.
enum class MonitorStatistic : std::uint8_t { norm, min, max, zeros, nans, id, mean, shape, dtype };
inline constexpr std::array<std::string_view, 9> kStatisticNames = {"norm", "min",  "max",   "zeros", "nans",
                                                                    "id",   "mean", "shape", "dtype"};
constexpr std::string_view name_of(MonitorStatistic statistic) {
  return kStatisticNames[static_cast<std::size_t>(statistic)];
}

}  // namespace msprobe::series
