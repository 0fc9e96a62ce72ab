// SPDX-License-Identifier: Apache-2.0
// The pass that StatisticsAccumulator uses, for callers that cannot afford an allocation.
#pragma once

#include <cmath>
#include <cstddef>
#include <optional>
#include <span>
#include <type_traits>

#include "tensor/accumulate.hpp"
#include "tensor/kernels.hpp"
#include "tensor/statistics.hpp"

namespace msprobe::tensor {

/// T is float, double, std::int64_t or std::uint64_t.
template <typename T>
class StatisticsPass {
 public:
  explicit StatisticsPass(const Kernels& kernels)
      : kernels_(&typed_kernels<T>(kernels)), side_(empty_side<T>()) {}
  /// `small` replaces the smallest normal number as the limit for Statistics::denormal. Without it, zeros and
  /// small elements may be missing in the counts, which is faster.
  StatisticsPass(const Kernels& kernels, std::optional<T> small) : StatisticsPass(kernels) {
    if (small) {
      side_.small = *small;
    } else {
      counts_small_ = std::is_integral_v<T>;
    }
  }

  void add(std::span<const T> data) {
    cutter_.feed({data.data()}, data.size(), [this](const Pointers& p, std::size_t n, const Pointers& ahead) {
      block(p[0], n, ahead[0]);
    });
  }

  Statistics finish() const {
    StatisticsPass last = *this;
    const T* rest = last.cutter_.rest_pointers()[0];
    last.block(rest, last.cutter_.rest_size(), rest);
    return make_statistics(cutter_.count(), last.side_, last.sums_);
  }

 private:
  using Cutter = RowCutter<T, 1>;
  using Pointers = typename Cutter::Pointers;

  void block(const T* data, std::size_t n, const T* ahead) {
    if (counts_small_) {
      kernels_->side(data, n, &side_);
      kernels_->sums(data, n, ahead, &sums_);
    } else {
      kernels_->extrema(data, n, &side_);
      kernels_->sums(data, n, ahead, &sums_);
      // An element that is not finite makes the squares infinite or NaN from its block on, so elements are
      // counted only then.
      if (!std::isfinite(sum_lanes(sums_.squares))) kernels_->side(data, n, &side_);
    }
  }

  const TypedKernels<T>* kernels_;
  bool counts_small_ = true;
  Cutter cutter_;
  SideState<T> side_;
  SumState sums_ = {};
};

}  // namespace msprobe::tensor
