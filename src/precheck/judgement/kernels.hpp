// SPDX-License-Identifier: Apache-2.0
// The element loops of float_figures(). kernels.cpp is compiled once for each instruction set;
// tensor/kernels.hpp says why a header like this one holds nothing but declarations and plain structures.
#pragma once

#include <cstddef>
#include <cstdint>

namespace msprobe::precheck {

/// The range of normal elements.
template <typename T>
struct PieceRange {
  T small_value;  // up to it elements are small
  T overflow;     // from it on a reference is infinite in the device's type
};

/// The results of the first pass. They start as zeros.
template <typename T>
struct PieceLook {
  T max_reference;  // largest magnitude of those that are not NaN
  T max_device;
  std::uint64_t nan_reference;
  std::uint64_t nan_device;
  std::uint64_t nonfinite;  // pairs with something that is not finite
  std::uint64_t zeros;      // of the device
  std::uint64_t normal;     // pairs
};

/// The scale of an element's error.
template <typename T>
struct PieceScale {
  T epsilon;     // added to what a relative error is divided by
  T least_told;  // values up to this size need no correct digit
  int fraction;  // bits of the device's type
  int least;     // exponent at which units stop shrinking
};

/// The figures of all elements. They start as zeros.
template <typename T>
struct PieceFacts {
  T max_absolute;  // largest of those that are not NaN
  T max_units;
  std::uint64_t nan;  // among absolute errors
  std::uint64_t within_hundredth;
  std::uint64_t within_thousandth;
  std::uint64_t within_ten_thousandth;
  std::uint64_t unequal;
  std::uint64_t wrong;
};

template <typename T>
struct PieceLimits {
  T small_value;
  T small_tolerance;
  T relative_tolerance;
};

/// The figures of small and of normal elements. They start as zeros.
template <typename T>
struct PieceSorts {
  T max_relative;
  std::uint64_t above;
  std::uint64_t below;
  std::uint64_t small;
  std::uint64_t normal;
  std::uint64_t small_errors;
  std::uint64_t relative_errors;
};

template <typename T>
struct UlpScale {
  T threshold;
  int fraction;  // bits of the device's type
  int least;     // exponent of its smallest normal number
};

/// Start with zeros.
template <typename T>
struct UlpFacts {
  T max;
  std::uint64_t above;
};

/// `b` is the reference, `rounded` the same in the device's type, `d` the device's result; at most 2^20
/// elements.
template <typename T>
struct PieceKernels {
  void (*look)(const T* b, const T* d, std::size_t n, const PieceRange<T>* range, PieceLook<T>* look);
  /// Also writes absolute and relative errors.
  void (*errors)(const T* b, const T* rounded, const T* d, std::size_t n, const PieceScale<T>* scale,
                 T* absolute, T* relative, PieceFacts<T>* facts);
  /// Also writes the square of the absolute error of normal elements, 0 for all others.
  void (*sorts)(const T* b, const T* rounded, const T* d, const T* absolute, const T* relative, std::size_t n,
                const PieceLimits<T>* limits, T* squares, PieceSorts<T>* sorts);
  /// Writes errors in the Python tool's units: it takes the logarithm of 0 as 0.
  void (*ulp)(const T* b, const T* absolute, std::size_t n, const UlpScale<T>* scale, T* units,
              UlpFacts<T>* facts);
  /// The sum of at most 128 elements, in NumPy's order: in 8 columns from 8 elements on.
  T (*leaf_sum)(const T* x, std::size_t n);
  /// Keeps the values of normal elements, in their order; returns how many. `kept` has room for n.
  std::size_t (*keep_normal)(const T* b, const T* d, const T* values, std::size_t n,
                             const PieceRange<T>* range, T* kept);
};

struct JudgeKernels {
  PieceKernels<float> float32;
  PieceKernels<double> float64;
  void (*widen)(const float* from, std::size_t n, double* out);
  /// Rounds to the nearest float, and writes it as a double.
  void (*round_to_float)(const double* from, std::size_t n, double* out);
};

#define MSPROBE_DECLARE_JUDGE_KERNELS(isa) \
  namespace isa {                          \
  extern const JudgeKernels kKernels;      \
  }
MSPROBE_DECLARE_JUDGE_KERNELS(judge_scalar)
MSPROBE_DECLARE_JUDGE_KERNELS(judge_sse2)
MSPROBE_DECLARE_JUDGE_KERNELS(judge_avx2)
MSPROBE_DECLARE_JUDGE_KERNELS(judge_avx512)
MSPROBE_DECLARE_JUDGE_KERNELS(judge_neon)
#undef MSPROBE_DECLARE_JUDGE_KERNELS

}  // namespace msprobe::precheck
