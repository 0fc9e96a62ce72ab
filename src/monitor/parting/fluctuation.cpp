// SPDX-License-Identifier: Apache-2.0
#include "monitor/parting/fluctuation.hpp"

#include <algorithm>
#include <cmath>

namespace msprobe::monitor {
namespace {

constexpr double kOfMedian = 1.4826;
constexpr double kOf95th = 0.51;  // 1 / 1.96
constexpr double kOfLargest = 0.4;
constexpr std::size_t kWays = 64;  // the most pairs sampled for one distance

double nth(std::vector<double>& values, std::size_t n) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(n), values.end());
  return values[n];
}

std::vector<double> changes_of(std::span<const double> values) {
  std::vector<double> changes;
  changes.reserve(values.size());
  for (std::size_t i = 1; i < values.size(); ++i) {
    if (std::isfinite(values[i] - values[i - 1])) changes.push_back(values[i] - values[i - 1]);
  }
  return changes;
}

/// The spread around zero. The numbers must be finite; the function overwrites them.
double size_of(std::vector<double>& values) {
  if (values.empty()) return 0;
  for (double& value : values) value = std::fabs(value);
  const double usual = median(values);
  const double rare = nth(values, (values.size() - 1) * 95 / 100);
  const double largest = *std::ranges::max_element(values);
  return std::max({kOfMedian * usual, kOf95th * rare, kOfLargest * largest});
}

/// The median change between numbers that are `distance` steps apart.
double way(std::span<const double> values, std::size_t distance, std::vector<double>& ways) {
  ways.clear();
  const std::size_t count = values.size() - distance;
  const std::size_t stride = std::max<std::size_t>(1, count / kWays);
  for (std::size_t i = 0; i < count; i += stride) {
    const double length = std::fabs(values[i + distance] - values[i]);
    if (std::isfinite(length)) ways.push_back(length);
  }
  return ways.size() < 2 ? 0 : kOfMedian * median(ways);
}

}  // namespace

double median(std::vector<double>& values) {
  return nth(values, values.size() / 2);
}

double scatter(std::vector<double>& values) {
  std::erase_if(values, [](double value) { return !std::isfinite(value); });
  if (values.size() < 2) return 0;
  const double middle = median(values);
  for (double& value : values) value -= middle;
  return size_of(values);
}

double scatter_of_changes(std::span<const double> values) {
  std::vector<double> changes = changes_of(values);
  return scatter(changes);
}

double size_of_changes(std::span<const double> values) {
  std::vector<double> changes = changes_of(values);
  return size_of(changes);
}

double reach(std::span<const double> values) {
  if (values.size() < 2) return 0;
  std::vector<double> ways;
  const double next = way(values, 1, ways);
  double farthest = next;
  for (std::size_t distance = 2; distance <= values.size() / 2; distance *= 2) {
    farthest = std::max(
        farthest, std::min(way(values, distance, ways), next * std::sqrt(static_cast<double>(distance))));
  }
  return farthest;
}

}  // namespace msprobe::monitor
