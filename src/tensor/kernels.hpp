// SPDX-License-Identifier: Apache-2.0
// The functions of kernels.cpp and their state. kernels.cpp is compiled once for each instruction set, so
// this header must not contain anything that makes the compiler emit a shared function (inline functions,
// member initialisers, library headers): the linker keeps one copy of such a function, perhaps one that this
// machine cannot run.
//
// Every kernel takes n elements of which the first belongs to lane 0, so callers cut the data at multiples of
// 16.
#pragma once

#include <cstddef>
#include <cstdint>

namespace msprobe::tensor {

inline constexpr std::size_t kLanes = 16;

/// Properties of one tensor that need no sum. Start with max = lowest (-inf for floats), min = highest, small
/// = the magnitude below which elements are counted (integers have no such count), and all else 0.
template <typename T>
struct SideState {
  T max[kLanes];
  T min[kLanes];
  T small;
  std::uint64_t zero;
  std::uint64_t below_small;  // without zeros; modulo 2^64, in case zero itself is not below
  std::uint64_t nan;
  std::uint64_t pos_inf;
  std::uint64_t neg_inf;
};

/// Sums of one tensor. Start with zeros.
struct SumState {
  double sum[kLanes];
  double squares[kLanes];
};

/// Sums over pairs of finite elements. Start with zeros.
struct PairState {
  SumState target;
  SumState golden;
  double dot[kLanes];
  double squares_difference[kLanes];
  double max_abs[kLanes];
};

/// The working type of the relative error.
template <typename T>
struct RelativeType {
  using type = double;
};
template <>
struct RelativeType<float> {
  using type = float;
};

/// Relative error over pairs of finite elements. Start with zeros.
template <typename T>
struct RelativeState {
  typename RelativeType<T>::type max[kLanes];
  std::uint64_t below_one_thousandth;
  std::uint64_t below_five_thousandths;
  std::uint64_t unequal;
};

/// Counts over pairs in which a side is NaN or infinite. Start with zeros.
struct MismatchState {
  std::uint64_t nonfinite;
  std::uint64_t infinity_sign;
  std::uint64_t unequal;
};

template <typename T>
struct TypedKernels {
  /// Extrema and counts of one tensor. Returns true if any element is NaN or infinite.
  bool (*side)(const T* x, std::size_t n, SideState<T>* state);
  /// Only the extrema.
  void (*extrema)(const T* x, std::size_t n, SideState<T>* state);
  /// Sum and sum of squares of one tensor. `ahead` is the next data, for prefetching.
  void (*sums)(const T* x, std::size_t n, const void* ahead, SumState* state);
  /// Both tensors' sums (the same numbers as `sums`) and the sums over pairs. All elements must be finite.
  void (*pair_sums)(const T* target, const T* golden, std::size_t n, const void* target_ahead,
                    const void* golden_ahead, PairState* state);
  /// Relative errors and inequality. All elements must be finite.
  void (*relative)(const T* target, const T* golden, std::size_t n, RelativeState<T>* state);
  /// Copies the pair with 0 on both sides wherever either is not finite, and counts how those differ.
  void (*mask)(const T* target, const T* golden, std::size_t n, T* target_out, T* golden_out,
               MismatchState* state);
};

struct Kernels {
  TypedKernels<float> float32;
  TypedKernels<double> float64;
  TypedKernels<std::int64_t> int64;  // integers lack `extrema` and `mask`: their `side` returns false
  TypedKernels<std::uint64_t> uint64;
  /// Widens IEEE half precision exactly; the source may have any alignment.
  void (*half_to_float)(const void* half, std::size_t n, float* out);
  /// Widens bfloat16 exactly; the source may have any alignment.
  void (*bfloat16_to_float)(const void* bfloat16, std::size_t n, float* out);
};

#define MSPROBE_DECLARE_KERNELS(isa) \
  namespace isa {                    \
  extern const Kernels kKernels;     \
  }
MSPROBE_DECLARE_KERNELS(kernels_scalar)
MSPROBE_DECLARE_KERNELS(kernels_sse2)
MSPROBE_DECLARE_KERNELS(kernels_avx2)
MSPROBE_DECLARE_KERNELS(kernels_avx512)
MSPROBE_DECLARE_KERNELS(kernels_neon)
#undef MSPROBE_DECLARE_KERNELS

}  // namespace msprobe::tensor
