// SPDX-License-Identifier: Apache-2.0
// The pass behind StatisticsAccumulator, for callers that cannot pay for an allocation.
#pragma once

#include <cstddef>
#include <span>

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
  /// `small` takes the place of the smallest normal number in what Statistics::denormal counts.
  StatisticsPass(const Kernels& kernels, T small) : StatisticsPass(kernels) { side_.small = small; }

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
    kernels_->side(data, n, &side_);
    kernels_->sums(data, n, ahead, &sums_);
  }

  const TypedKernels<T>* kernels_;
  Cutter cutter_;
  SideState<T> side_;
  SumState sums_ = {};
};

}  // namespace msprobe::tensor
