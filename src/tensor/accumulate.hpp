// SPDX-License-Identifier: Apache-2.0
// Shared code of StatisticsAccumulator and DifferenceAccumulator: cuts pieces of any size into blocks for the
// kernels, and combines lanes into numbers.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <type_traits>
#include <variant>

#include "tensor/kernels.hpp"
#include "tensor/statistics.hpp"

namespace msprobe::tensor {

/// Cuts S parallel streams of elements into blocks that begin at lane 0, whatever the sizes of their pieces.
template <typename T, std::size_t S>
class RowCutter {
 public:
  using Pointers = std::array<const T*, S>;
  /// A block of each stream stays in the first-level cache while several kernels go over it.
  static constexpr std::size_t kBlock = 8192 / sizeof(T);
  static_assert(kBlock % kLanes == 0);

  /// Calls block(pointers, n, pointers to the next block) for all elements that are complete so far; n is a
  /// multiple of 16.
  template <typename Block>
  void feed(Pointers from, std::size_t n, Block block) {
    count_ += n;
    if (rest_size_ > 0) {
      const std::size_t taken = std::min(n, kLanes - rest_size_);
      take(from, taken);
      n -= taken;
      if (rest_size_ < kLanes) return;
      block(rest_pointers(), kLanes, from);
      rest_size_ = 0;
    }
    while (n >= kLanes) {
      const std::size_t size = std::min(n - n % kLanes, kBlock);
      Pointers next = from;
      for (const T*& p : next) p += size;
      n -= size;
      block(from, size, n > 0 ? next : from);
      from = next;
    }
    take(from, n);
  }

  /// The number of elements fed so far.
  std::uint64_t count() const { return count_; }
  /// The number of elements that `feed` still holds: fewer than 16.
  std::size_t rest_size() const { return rest_size_; }
  Pointers rest_pointers() const {
    Pointers pointers;
    for (std::size_t s = 0; s < S; ++s) pointers[s] = rest_[s].data();
    return pointers;
  }

 private:
  void take(Pointers& from, std::size_t n) {
    for (std::size_t s = 0; s < S; ++s) {
      std::copy_n(from[s], n, rest_[s].begin() + static_cast<std::ptrdiff_t>(rest_size_));
      from[s] += n;
    }
    rest_size_ += n;
  }

  std::array<std::array<T, kLanes>, S> rest_ = {};
  std::size_t rest_size_ = 0;
  std::uint64_t count_ = 0;
};

template <typename T>
const TypedKernels<T>& typed_kernels(const Kernels& kernels) {
  if constexpr (std::is_same_v<T, float>) {
    return kernels.float32;
  } else if constexpr (std::is_same_v<T, double>) {
    return kernels.float64;
  } else if constexpr (std::is_same_v<T, std::int64_t>) {
    return kernels.int64;
  } else {
    static_assert(std::is_same_v<T, std::uint64_t>);
    return kernels.uint64;
  }
}

template <typename T>
SideState<T> empty_side() {
  using Limits = std::numeric_limits<T>;
  SideState<T> state = {};
  std::fill_n(state.max, kLanes, Limits::has_infinity ? -Limits::infinity() : Limits::lowest());
  std::fill_n(state.min, kLanes, Limits::has_infinity ? Limits::infinity() : Limits::max());
  state.small = Limits::min();
  return state;
}

/// The sign and payload of a computed NaN depend on the processor, which a result must not.
inline double canonical(double value) {
  return std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value;
}

/// The lanes' sum, in one fixed order.
inline double sum_lanes(const double (&lanes)[kLanes]) {
  std::array<double, kLanes> part;
  std::copy_n(lanes, kLanes, part.begin());
  for (std::size_t half = kLanes / 2; half > 0; half /= 2) {
    for (std::size_t lane = 0; lane < half; ++lane) part[lane] += part[lane + half];
  }
  return canonical(part[0]);
}

template <typename T>
double max_lane(const T (&lanes)[kLanes]) {
  return static_cast<double>(*std::max_element(lanes, lanes + kLanes));
}

template <typename T>
Statistics make_statistics(std::uint64_t count, const SideState<T>& side, const SumState& sums) {
  Statistics result;
  result.count = count;
  result.nan = side.nan;
  result.pos_inf = side.pos_inf;
  result.neg_inf = side.neg_inf;
  result.zero = side.zero;
  result.denormal = side.below_small;
  const bool any = side.nan < count;
  result.max = any ? max_lane(side.max) : std::numeric_limits<double>::quiet_NaN();
  result.min = any ? static_cast<double>(*std::min_element(side.min, side.min + kLanes))
                   : std::numeric_limits<double>::quiet_NaN();
  if constexpr (std::is_integral_v<T>) {
    if (any) {
      result.integer_max = static_cast<std::int64_t>(*std::max_element(side.max, side.max + kLanes));
      result.integer_min = static_cast<std::int64_t>(*std::min_element(side.min, side.min + kLanes));
    }
  }
  result.sum = sum_lanes(sums.sum);
  result.sum_of_squares = sum_lanes(sums.squares);
  return result;
}

/// The pass over the element type that the first `add` chose; a second type is an error of the caller.
template <typename Pass, typename Passes>
Pass& pass_of(Passes& passes, const Kernels& kernels) {
  if (std::holds_alternative<std::monostate>(passes)) passes.template emplace<Pass>(kernels);
  Pass* pass = std::get_if<Pass>(&passes);
  if (pass == nullptr) throw std::logic_error("one accumulator was given elements of two types");
  return *pass;
}

}  // namespace msprobe::tensor
