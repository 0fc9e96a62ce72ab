// SPDX-License-Identifier: Apache-2.0
#include "tensor/difference.hpp"

#include <cmath>
#include <cstring>
#include <stdexcept>
#include <type_traits>
#include <variant>
#include <vector>

#include "tensor/accumulate.hpp"
#include "tensor/kernels.hpp"

namespace msprobe::tensor {
namespace {

template <typename T>
class DifferencePass {
 public:
  explicit DifferencePass(const Kernels& kernels)
      : kernels_(&typed_kernels<T>(kernels)), target_side_(empty_side<T>()), golden_side_(empty_side<T>()) {}

  void add(std::span<const T> target, std::span<const T> golden) {
    cutter_.feed({target.data(), golden.data()}, target.size(),
                 [this](const Pointers& p, std::size_t n, const Pointers& ahead) { block(p, n, ahead); });
  }

  Difference finish() const {
    DifferencePass last = *this;
    const Pointers rest = last.cutter_.rest_pointers();
    last.block(rest, last.cutter_.rest_size(), rest);
    return last.result();
  }

 private:
  using Cutter = RowCutter<T, 2>;
  using Pointers = typename Cutter::Pointers;

  void block(const Pointers& data, std::size_t n, const Pointers& ahead) {
    const auto [target, golden] = data;
    const bool target_dirty = kernels_->side(target, n, &target_side_);
    const bool golden_dirty = kernels_->side(golden, n, &golden_side_);
    const bool dirty = target_dirty || golden_dirty;
    // While all elements are finite, each side's own sums equal those of the pairs. From the first block with
    // other elements on, they are kept separately.
    if (dirty && !own_sums_) {
      own_sums_ = true;
      target_sums_ = pairs_.target;
      golden_sums_ = pairs_.golden;
    }
    if (own_sums_) {
      kernels_->sums(target, n, target, &target_sums_);
      kernels_->sums(golden, n, golden, &golden_sums_);
    }
    const std::uint64_t unequal_before = unequal();
    const T* target_finite = target;
    const T* golden_finite = golden;
    if (dirty) {
      masked_.resize(2 * Cutter::kBlock);
      T* target_masked = masked_.data();
      T* golden_masked = masked_.data() + Cutter::kBlock;
      kernels_->mask(target, golden, n, target_masked, golden_masked, &mismatch_);
      target_finite = target_masked;
      golden_finite = golden_masked;
    }
    if (std::memcmp(target_finite, golden_finite, n * sizeof(T)) == 0) {
      // The values are equal, so all relative errors are 0.
      relative_.below_one_thousandth += n;
      relative_.below_five_thousandths += n;
    } else {
      kernels_->relative(target_finite, golden_finite, n, &relative_);
    }
    kernels_->pair_sums(target_finite, golden_finite, n, ahead[0], ahead[1], &pairs_);
    if (first_unequal_ < 0 && unequal() > unequal_before) find_first_unequal(target, golden, n);
    processed_ += n;
  }

  std::uint64_t unequal() const { return relative_.unequal + mismatch_.unequal; }

  void find_first_unequal(const T* target, const T* golden, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) {
      const bool both_nan = std::isnan(target[i]) && std::isnan(golden[i]);
      if (target[i] != golden[i] && !both_nan) {
        first_unequal_ = static_cast<std::int64_t>(processed_ + i);
        return;
      }
    }
  }

  Difference result() const {
    Difference result;
    result.count = cutter_.count();
    result.nonfinite_mismatch = mismatch_.nonfinite;
    result.infinity_sign_mismatch = mismatch_.infinity_sign;
    result.unequal = unequal();
    result.first_unequal = first_unequal_;
    result.dot = sum_lanes(pairs_.dot);
    result.squares_target = sum_lanes(pairs_.target.squares);
    result.squares_golden = sum_lanes(pairs_.golden.squares);
    result.squares_difference = sum_lanes(pairs_.squares_difference);
    result.max_abs = max_lane(pairs_.max_abs);
    result.max_relative = max_lane(relative_.max);
    result.below_one_thousandth = relative_.below_one_thousandth;
    result.below_five_thousandths = relative_.below_five_thousandths;
    result.target = make_statistics(result.count, target_side_, own_sums_ ? target_sums_ : pairs_.target);
    result.golden = make_statistics(result.count, golden_side_, own_sums_ ? golden_sums_ : pairs_.golden);
    return result;
  }

  const TypedKernels<T>* kernels_;
  Cutter cutter_;
  SideState<T> target_side_;
  SideState<T> golden_side_;
  bool own_sums_ = false;
  SumState target_sums_ = {};
  SumState golden_sums_ = {};
  PairState pairs_ = {};
  RelativeState<T> relative_ = {};
  MismatchState mismatch_ = {};
  std::int64_t first_unequal_ = -1;
  std::uint64_t processed_ = 0;
  std::vector<T> masked_;  // both sides of one block; empty while all elements are finite
};

}  // namespace

struct DifferenceAccumulator::Impl {
  template <typename T>
  void add(std::span<const T> target, std::span<const T> golden) {
    if (target.size() != golden.size()) throw std::logic_error("the two sides' pieces differ in length");
    pass_of<DifferencePass<T>>(pass, kernels).add(target, golden);
  }

  const Kernels& kernels;
  std::variant<std::monostate, DifferencePass<float>, DifferencePass<double>, DifferencePass<std::int64_t>,
               DifferencePass<std::uint64_t>>
      pass;
};

DifferenceAccumulator::DifferenceAccumulator(Isa isa) : impl_(new Impl{kernels_for(isa), {}}) {}
DifferenceAccumulator::DifferenceAccumulator() : DifferenceAccumulator(best_isa()) {}
DifferenceAccumulator::~DifferenceAccumulator() = default;
DifferenceAccumulator::DifferenceAccumulator(DifferenceAccumulator&&) noexcept = default;
DifferenceAccumulator& DifferenceAccumulator::operator=(DifferenceAccumulator&&) noexcept = default;

void DifferenceAccumulator::add(std::span<const float> target, std::span<const float> golden) {
  impl_->add(target, golden);
}
void DifferenceAccumulator::add(std::span<const double> target, std::span<const double> golden) {
  impl_->add(target, golden);
}
void DifferenceAccumulator::add(std::span<const std::int64_t> target, std::span<const std::int64_t> golden) {
  impl_->add(target, golden);
}
void DifferenceAccumulator::add(std::span<const std::uint64_t> target,
                                std::span<const std::uint64_t> golden) {
  impl_->add(target, golden);
}

Difference DifferenceAccumulator::finish() const {
  return std::visit(
      [](const auto& pass) {
        if constexpr (std::is_same_v<std::decay_t<decltype(pass)>, std::monostate>) {
          Difference nothing;
          nothing.target = make_statistics(0, empty_side<double>(), SumState{});
          nothing.golden = nothing.target;
          return nothing;
        } else {
          return pass.finish();
        }
      },
      impl_->pass);
}

}  // namespace msprobe::tensor
