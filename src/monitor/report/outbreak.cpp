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
constexpr std::size_t kLeastBlocks = 8;  // of kStepsBefore steps: fewer have no long past
constexpr double kGrown = 2;             // in powers of two

/// What is usual for the steps from a place on: middle and fluctuation of the logarithms before it.
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

/// What creeps: within the last quarter of its time the size came to four times of all that was before. What
/// grows from 0 in the way of a parameter, or with the learning rate, does not.
std::optional<Outbreak> find_creeping(std::span<const double> values, const std::vector<double>& sizes) {
  std::vector<double> middles;  // of blocks of steps
  std::vector<double> largest;  // middle up to there
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
        return Outbreak{Outbreak::Kind::growth, at, values[at], std::exp2(usual)};
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
