// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/average.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

#include "checkpoint/names.hpp"
#include "checkpoint/pieces.hpp"
#include "support/text.hpp"

namespace msprobe::checkpoint {
namespace {

/// Calls `take(x, z, y)` for each element of the first, the third and the second.
template <typename Take>
void each_of_three(const Parameter& first, const Parameter& third, const Parameter& second,
                   const Take& take) {
  tensor::ElementFeed<double, ParameterReader> feed(third);
  each_piece<double>(first, second, {},
                     [&](std::span<const double> x, std::span<const double> y, auto, auto) {
                       const std::span<const double> z = feed.next(x.size());
                       for (std::size_t i = 0; i < x.size(); ++i) take(x[i], z[i], y[i]);
                     });
}

}  // namespace

ThirdCheckpoint::ThirdCheckpoint(const Checkpoint& checkpoint) {
  for (const CheckpointEntry& entry : checkpoint.entries) {
    if (entry.problem.empty()) parameters_.emplace(without_wrappers(entry.parameter.name), entry.parameter);
  }
}

bool ThirdCheckpoint::knows(const Checkpoint& checkpoint) const {
  return std::ranges::any_of(checkpoint.entries, [&](const CheckpointEntry& entry) {
    return parameters_.contains(without_wrappers(entry.parameter.name));
  });
}

std::string ThirdCheckpoint::average(const Parameter& first, const Parameter& second) const {
  const auto found = parameters_.find(without_wrappers(first.name));
  if (found == parameters_.end()) return {};
  const Parameter& third = found->second;
  // A few numbers are always some average of a few others.
  constexpr std::int64_t kFewest = 16;
  if (third.shape != first.shape || second.shape != first.shape || first.numel() < kFewest ||
      !is_floating(first.dtype) || !is_floating(second.dtype) || !is_floating(third.dtype))
    return {};
  double dd = 0;
  double dy = 0;
  each_of_three(first, third, second, [&](double x, double z, double y) {
    dd += (z - x) * (z - x);
    dy += (z - x) * (y - x);
  });
  const double share = dy / dd;
  if (!std::isfinite(share)) return {};
  // Each product and the sum may have been rounded to the widest type of the three, or to the narrowest.
  const double roundoff = std::max({tensor::unit_roundoff(first.dtype), tensor::unit_roundoff(second.dtype),
                                    tensor::unit_roundoff(third.dtype)});
  double from_first = 0;  // squared distances
  double from_third = 0;
  double roundings = 0;
  bool all = true;
  each_of_three(first, third, second, [&](double x, double z, double y) {
    const double a = (1 - share) * x;
    const double b = share * z;
    const double rounding = 1.01 * roundoff * (std::fabs(a) + std::fabs(b) + std::fabs(y));
    all = all && std::fabs(y - a - b) <= rounding;
    from_first += (y - x) * (y - x);
    from_third += (y - z) * (y - z);
    roundings += rounding * rounding;
  });
  // If the second is this close to the first or the third, rounding alone could explain the rest.
  constexpr double kLeastDistance = 16;
  if (!all || std::min(from_first, from_third) < kLeastDistance * roundings) return {};
  return fmt::format("{} x the first {} {} x the third", short_number(1 - share, 4), share < 0 ? '-' : '+',
                     short_number(std::fabs(share), 3));
}

}  // namespace msprobe::checkpoint
