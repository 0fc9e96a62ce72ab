// SPDX-License-Identifier: Apache-2.0
#include "tensor/statistics.hpp"

#include <cmath>
#include <limits>
#include <type_traits>
#include <variant>

#include "tensor/kernels.hpp"
#include "tensor/statistics_pass.hpp"

namespace msprobe::tensor {
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
