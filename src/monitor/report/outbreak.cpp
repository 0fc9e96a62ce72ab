// SPDX-License-Identifier: Apache-2.0
#include "monitor/report/outbreak.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "monitor/parting/fluctuation.hpp"

namespace msprobe::monitor {
namespace {

constexpr std::size_t kStepsBefore = 64;  // steps before that tell what is usual
constexpr std::size_t kLeastBefore = 8;   // fewer tell nothing
constexpr std::size_t kSameUsual = 16;
constexpr std::size_t kStepsAbove = 5;   // of which one may be within
constexpr double kTimesFluctuation = 8;  // the fluctuation
constexpr double kDoubled = 1;           // in powers of two

/// What is usual for the steps from a place on: middle and fluctuation of the logarithms before it.
struct Usual {
  double middle = 0;
  double limit = 0;
};

std::optional<Usual> usual_before(const std::vector<double>& sizes, std::size_t at) {
  const std::size_t from = at > kStepsBefore ? at - kStepsBefore : 0;
  std::vector<double> earlier;
  for (std::size_t i = from; i < at; ++i) {
    if (std::isfinite(sizes[i])) earlier.push_back(sizes[i]);
  }
  if (earlier.size() < kLeastBefore) return std::nullopt;
  std::vector<double> sorted = earlier;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  const double usual = *middle;
  return Usual{usual, std::max(kDoubled, kTimesFluctuation * scatter(earlier))};
}

bool stays_above(const std::vector<double>& sizes, std::size_t at, const Usual& usual) {
  std::size_t seen = 0;
  std::size_t above = 0;
  for (std::size_t i = at; i < sizes.size() && seen < kStepsAbove; ++i) {
    ++seen;
    above += !std::isfinite(sizes[i]) || sizes[i] - usual.middle > usual.limit;
  }
  return above + 1 >= seen && above >= std::min<std::size_t>(seen, 2);
}

}  // namespace

std::optional<Outbreak> find_outbreak(std::span<const double> values) {
  std::vector<double> sizes(values.size());
  std::transform(values.begin(), values.end(), sizes.begin(),
                 [](double value) { return value == 0 ? -INFINITY : std::log2(std::fabs(value)); });
  std::optional<Usual> usual;
  bool any_finite = false;
  for (std::size_t at = 0; at < values.size(); ++at) {
    if (at % kSameUsual == 0 || !usual) usual = usual_before(sizes, at / kSameUsual * kSameUsual);
    if (!usual) usual = usual_before(sizes, at);
    const double middle = usual ? std::exp2(usual->middle) : 0;
    if (!std::isfinite(values[at])) {
      if (any_finite) return Outbreak{Outbreak::Kind::number, at, values[at], middle};
      continue;
    }
    any_finite = true;
    if (usual && sizes[at] - usual->middle > usual->limit && stays_above(sizes, at, *usual)) {
      return Outbreak{Outbreak::Kind::growth, at, values[at], middle};
    }
  }
  return std::nullopt;
}

}  // namespace msprobe::monitor
