// SPDX-License-Identifier: Apache-2.0
// The pass behind StatisticsAccumulator, for callers that cannot pay for an allocation.
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
  /// `small` takes the place of the smallest normal number in what Statistics::denormal counts; without it
  /// zeros and small elements may be left out of the counts, which is faster.
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
      // Whatever is not finite shows in the squares, from its block on: there it is counted.
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
