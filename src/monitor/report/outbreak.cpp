// SPDX-License-Identifier: Apache-2.0
#include "monitor/report/outbreak.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "monitor/parting/fluctuation.hpp"

namespace msprobe::monitor {
namespace {

constexpr std::size_t kStepsBefore = 64;  // earlier steps that define the usual size
constexpr std::size_t kLeastBefore = 8;   // with fewer steps the usual size is unknown
constexpr std::size_t kSameUsual = 16;
constexpr std::size_t kStepsAbove = 5;   // one of these may be within the limit
constexpr double kTimesFluctuation = 8;  // limit in units of the fluctuation
constexpr double kDoubled = 1;           // limit in powers of two
constexpr std::size_t kLeastBlocks = 8;  // of kStepsBefore steps each: with fewer, the past is too short
constexpr double kGrown = 2;             // limit in powers of two

/// The usual size for the steps from a place on: median and fluctuation of the logarithms before it.
struct Usual {
  double middle = 0;
  double limit = 0;
};

std::vector<double> finite_among(const std::vector<double>& sizes, std::size_t from, std::size_t end) {
  std::vector<double> finite;
  for (std::size_t i = from; i < end; ++i) {
    if (std::isfinite(sizes[i])) finite.push_back(sizes[i]);
  }
  return finite;
}

std::optional<Usual> usual_before(const std::vector<double>& sizes, std::size_t at) {
  std::vector<double> earlier = finite_among(sizes, at > kStepsBefore ? at - kStepsBefore : 0, at);
  if (earlier.size() < kLeastBefore) return std::nullopt;
  const double middle = median(earlier);
  return Usual{middle, std::max(kDoubled, kTimesFluctuation * scatter(earlier))};
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

/// Finds slow growth: within the last quarter of its time the size grew to more than four times its earlier
/// maximum. A parameter that grows from 0, or a size that grows with the learning rate, does not fulfil this.
std::optional<Outbreak> find_creeping(std::span<const double> values, const std::vector<double>& sizes) {
  std::vector<double> middles;  // the medians of blocks of steps
  std::vector<double> largest;  // the largest median up to each block
  for (std::size_t from = 0; from + kStepsBefore <= sizes.size(); from += kStepsBefore) {
    std::vector<double> block = finite_among(sizes, from, from + kStepsBefore);
    middles.push_back(block.size() < kStepsBefore / 2 ? -INFINITY : median(block));
    largest.push_back(largest.empty() ? middles.back() : std::max(largest.back(), middles.back()));
  }
  for (std::size_t block = kLeastBlocks; block < middles.size(); ++block) {
    const std::size_t past = block - block / 4;
    const double usual = largest[past - 1];
    if (!std::isfinite(usual) || middles[block] - usual <= kGrown) continue;
    for (std::size_t at = past * kStepsBefore; at < (block + 1) * kStepsBefore; ++at) {
      if (sizes[at] - usual > kDoubled && stays_above(sizes, at, {usual, kDoubled}))
        return Outbreak{Outbreak::OutbreakKind::growth, at, values[at], std::exp2(usual)};
    }
  }
  return std::nullopt;
}

std::optional<Outbreak> find_sudden(std::span<const double> values, const std::vector<double>& sizes) {
  std::optional<Usual> usual;
  bool any_finite = false;
  for (std::size_t at = 0; at < values.size(); ++at) {
    if (at % kSameUsual == 0 || !usual) usual = usual_before(sizes, at / kSameUsual * kSameUsual);
    if (!usual) usual = usual_before(sizes, at);
    const double middle = usual ? std::exp2(usual->middle) : 0;
    if (!std::isfinite(values[at])) {
      if (any_finite) return Outbreak{Outbreak::OutbreakKind::number, at, values[at], middle};
      continue;
    }
    any_finite = true;
    if (usual && sizes[at] - usual->middle > usual->limit && stays_above(sizes, at, *usual)) {
      return Outbreak{Outbreak::OutbreakKind::growth, at, values[at], middle};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Outbreak> find_outbreak(std::span<const double> values) {
  std::vector<double> sizes(values.size());
  std::transform(values.begin(), values.end(), sizes.begin(),
                 [](double value) { return value == 0 ? -INFINITY : std::log2(std::fabs(value)); });
  const std::optional<Outbreak> sudden = find_sudden(values, sizes);
  const std::optional<Outbreak> creeping = find_creeping(values, sizes);
  if (!sudden || (creeping && creeping->at < sudden->at)) return creeping;
  return sudden;
}

}  // namespace msprobe::monitor
