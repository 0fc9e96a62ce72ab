// SPDX-License-Identifier: Apache-2.0
// Pairs of elements, judged by the steps of a quantized format.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "checkpoint/pieces.hpp"
#include "checkpoint/special_numbers.hpp"
#include "checkpoint/step_check.hpp"

namespace msprobe::checkpoint {

/// Limits for tensors whose scales were searched for, measured on correct tensors that ggml's quantizers made
/// of numbers of nine distributions, in each 256 elements of a row. After a search for scales, no element is
/// further away than 2.01 of the widest half steps there, and at most 1.05 % of all elements are beyond half
/// a step. With an importance matrix, the distance reaches 6.1, and 0.5 to 4.7 % are beyond. The root mean
/// square of the distances is at most 1.18 of that of the half steps there, and 0.64 over all. (Uniform
/// distances would give 0.58.)
class SearchedScales {
 public:
  static constexpr double kFarthestOfFew = 2.5;
  static constexpr double kFarthest = 6.5;

  template <typename T>
  void add(std::span<const T> x, std::span<const T> y, std::span<const T> half_steps) {
    for (std::size_t begin = 0; begin < x.size(); begin += kChunk) {
      const std::size_t count = std::min(kChunk, x.size() - begin);
      add_chunk(x.subspan(begin, count), y.subspan(begin, count), half_steps.subspan(begin, count));
    }
    count_ += x.size();
  }
  double farthest() const { return farthest_; }
  /// True if the distances look like those that searched scales leave. NaN and infinities never do.
  bool hold(std::uint64_t beyond) const {
    const double share = static_cast<double>(beyond) / static_cast<double>(count_);
    return chunks_hold_ && std::isfinite(distances_) && share <= kMostBeyond &&
           farthest_ <= (share <= kFewBeyond ? kFarthestOfFew : kFarthest) &&
           distances_ <= kMostRms * kMostRms * steps_;
  }

 private:
  static constexpr std::size_t kChunk = 256;
  static constexpr double kFewBeyond = 0.008;
  static constexpr double kMostBeyond = 0.05;
  static constexpr double kMostRmsOfChunk = 1.25;
  static constexpr double kMostRms = 0.65;

  template <typename T>
  void add_chunk(std::span<const T> x, std::span<const T> y, std::span<const T> half_steps) {
    double distances = 0;
    double steps = 0;
    double farthest = 0;
    double widest = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double distance = std::fabs(static_cast<double>(x[i]) - static_cast<double>(y[i]));
      const auto step = static_cast<double>(half_steps[i]);
      distances += distance * distance;
      steps += step * step;
      farthest = std::max(farthest, distance);
      widest = std::max(widest, step);
    }
    distances_ += distances;
    steps_ += steps;
    chunks_hold_ = chunks_hold_ && distances <= kMostRmsOfChunk * kMostRmsOfChunk * steps;
    if (widest > 0) farthest_ = std::max(farthest_, farthest / widest);
  }

  double distances_ = 0;  // squared
  double steps_ = 0;
  double farthest_ = 0;  // in the widest half step of its chunk
  bool chunks_hold_ = true;
  std::size_t count_ = 0;
};

/// The half steps of a parameter, read beside its elements; zeros if it has none.
template <typename T>
class StepFeed {
 public:
  explicit StepFeed(const Parameter& parameter) {
    if (parameter.half_step != nullptr) feed_.emplace(*parameter.half_step);
  }
  std::span<const T> next(std::size_t count) {
    if (feed_) return feed_->next(count);
    zeros_.resize(std::max(zeros_.size(), count));
    return std::span<const T>(zeros_).first(count);
  }

 private:
  std::optional<tensor::ElementFeed<T, ParameterReader>> feed_;
  std::vector<T> zeros_;
};

/// Calls `take(x, y, half steps of x, half steps of y)` for each pair of pieces.
template <typename T, typename Take>
void each_with_steps(const Parameter& first, const Parameter& second, const Take& take) {
  StepFeed<T> ours(first);
  StepFeed<T> theirs(second);
  each_piece<T>(first, second, {}, [&](std::span<const T> x, std::span<const T> y, auto, auto) {
    const std::span<const T> a = ours.next(x.size());
    take(x, y, a, theirs.next(x.size()));
  });
}

/// How far two elements may be from each other: the sum of both half steps.
template <typename T>
std::span<const T> summed_steps(std::span<const T> ours, std::span<const T> theirs, std::vector<T>& kept) {
  kept.resize(ours.size());
  std::ranges::transform(ours, theirs, kept.begin(), std::plus<>());
  return kept;
}

// Programs write the middle between two levels with few digits, so the limit needs some slack.
inline constexpr float kSlack = 1.001F;
// The rounding of the product of level and scale in float32.
inline constexpr float kProductRounding = 0x1p-22F;

template <typename T>
bool is_near(T x, T y, T step) {
  if (x == y || (std::isnan(x) && std::isnan(y))) return true;
  // An infinite number is near itself alone, however wide its step.
  const T distance = std::fabs(x - y);
  return std::isfinite(distance) &&
         distance <= kSlack * step + kProductRounding * std::max(std::fabs(x), std::fabs(y));
}

/// True if all pairs are near, decided by signs and exponents, which compilers vectorize. May be false even
/// if is_near() is true for each.
template <typename T>
bool are_near(std::span<const T> x, std::span<const T> y, std::span<const T> step) {
  BitsOf<T> signs = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const T distance = std::fabs(x[i] - y[i]);
    const T limit = kSlack * step[i] + kProductRounding * std::fabs(x[i]);
    signs |= std::bit_cast<BitsOf<T>>(limit - distance) | special_sign(distance) | special_sign(limit);
  }
  return (signs & kSignBit<T>) == 0;
}

template <typename T>
class StepJudge {
 public:
  explicit StepJudge(bool is_searched) : is_searched_(is_searched) { check_.tried = true; }

  void add(std::span<const T> x, std::span<const T> y, std::span<const T> step) {
    const bool all_near = are_near(x, y, step);
    for (std::size_t i = 0; !all_near && i < x.size(); ++i) {
      if (is_near(x[i], y[i], step[i])) continue;
      if (check_.beyond++ == 0) check_.first = at_ + static_cast<std::int64_t>(i);
      double far = std::fabs(static_cast<double>(x[i]) - static_cast<double>(y[i])) / step[i];
      if (std::isnan(far)) far = std::numeric_limits<double>::infinity();
      if (far <= check_.farthest || (step[i] == 0 && std::isfinite(x[i] - y[i]))) continue;
      check_.farthest = far;
      check_.farthest_at = at_ + static_cast<std::int64_t>(i);
    }
    for (std::size_t i = 0; i < x.size(); ++i) {
      const bool differs = x[i] != y[i];
      unequal_ += differs ? 1 : 0;
      drowned_ += differs && std::max(std::fabs(x[i]), std::fabs(y[i])) <= kSlack * step[i] ? 1 : 0;
    }
    if (is_searched_) searched_.add(x, y, step);
    at_ += static_cast<std::int64_t>(x.size());
  }

  StepCheck result() const {
    StepCheck check = check_;
    // With codes of two bits about half are within half a step of 0, and more if one scale must also cover an
    // outlier.
    check.says_nothing = 10 * drowned_ > 9 * unequal_ && 10 * unequal_ > static_cast<std::uint64_t>(at_);
    check.as_searched = is_searched_ && !check.says_nothing && searched_.hold(check.beyond);
    check.farthest_of_chunk = searched_.farthest();
    return check;
  }
  /// True if more elements can still make the check hold.
  bool may_hold() const { return is_searched_ || check_.beyond == 0; }

 private:
  bool is_searched_;
  StepCheck check_;
  SearchedScales searched_;
  std::uint64_t unequal_ = 0;
  std::uint64_t drowned_ = 0;  // of these, both are within half a step of 0
  std::int64_t at_ = 0;
};

}  // namespace msprobe::checkpoint
