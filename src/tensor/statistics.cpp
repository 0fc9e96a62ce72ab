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
    cutter_.feed({data.data()}, data.size(), [this](const Pointers& p, std::size_t n) { block(p, n); });
  }

  Statistics finish() const {
    StatisticsPass last = *this;
    last.block(last.cutter_.rest_pointers(), last.cutter_.rest_size());
    return make_statistics(cutter_.count(), last.side_, last.sums_);
  }

 private:
  using Cutter = RowCutter<T, 1>;
  using Pointers = typename Cutter::Pointers;

  void block(const Pointers& data, std::size_t n) {
    kernels_->side(data[0], n, &side_);
    kernels_->sums(data[0], n, &sums_);
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
