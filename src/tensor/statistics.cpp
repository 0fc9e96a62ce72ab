// SPDX-License-Identifier: Apache-2.0
#include "tensor/statistics.hpp"

#include <cmath>
#include <limits>
#include <type_traits>
#include <variant>

#include "tensor/accumulate.hpp"
#include "tensor/kernels.hpp"

namespace msprobe::tensor {
namespace {

template <typename T>
class StatisticsPass {
 public:
  explicit StatisticsPass(const Kernels& kernels)
      : kernels_(&typed_kernels<T>(kernels)), side_(empty_side<T>()) {}

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

}  // namespace

double Statistics::mean() const {
  return count == 0 ? std::numeric_limits<double>::quiet_NaN() : sum / static_cast<double>(count);
}

double Statistics::norm() const {
  return std::sqrt(sum_of_squares);
}

struct StatisticsAccumulator::Impl {
  template <typename T>
  void add(std::span<const T> data) {
    pass_of<StatisticsPass<T>>(pass, kernels).add(data);
  }

  const Kernels& kernels;
  std::variant<std::monostate, StatisticsPass<float>, StatisticsPass<double>, StatisticsPass<std::int64_t>,
               StatisticsPass<std::uint64_t>>
      pass;
};

StatisticsAccumulator::StatisticsAccumulator(Isa isa) : impl_(new Impl{kernels_for(isa), {}}) {}
StatisticsAccumulator::StatisticsAccumulator() : StatisticsAccumulator(best_isa()) {}
StatisticsAccumulator::~StatisticsAccumulator() = default;
StatisticsAccumulator::StatisticsAccumulator(StatisticsAccumulator&&) noexcept = default;
StatisticsAccumulator& StatisticsAccumulator::operator=(StatisticsAccumulator&&) noexcept = default;

void StatisticsAccumulator::add(std::span<const float> data) {
  impl_->add(data);
}
void StatisticsAccumulator::add(std::span<const double> data) {
  impl_->add(data);
}
void StatisticsAccumulator::add(std::span<const std::int64_t> data) {
  impl_->add(data);
}
void StatisticsAccumulator::add(std::span<const std::uint64_t> data) {
  impl_->add(data);
}

Statistics StatisticsAccumulator::finish() const {
  return std::visit(
      [](const auto& pass) {
        if constexpr (std::is_same_v<std::decay_t<decltype(pass)>, std::monostate>) {
          return make_statistics(0, empty_side<double>(), SumState{});
        } else {
          return pass.finish();
        }
      },
      impl_->pass);
}

}  // namespace msprobe::tensor
