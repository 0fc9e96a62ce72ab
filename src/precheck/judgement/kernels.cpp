// SPDX-License-Identifier: Apache-2.0
// Compiled once for each instruction set: the build sets MSPROBE_KERNELS (the namespace) and
// MSPROBE_VECTOR_BYTES (0: one element at a time). All builds give identical bits: elements do not depend on
// each other, maxima and counts not on their order, and nothing is fused. Nothing but kernels.hpp and
// vectors.hpp may be included here.
#include "precheck/judgement/kernels.hpp"

#include "tensor/vectors.hpp"

namespace msprobe::precheck::MSPROBE_KERNELS {
namespace {

using namespace msprobe::MSPROBE_KERNELS;

template <typename T>
struct Traits;
template <>
struct Traits<float> {
  using Int = std::int32_t;
  static constexpr int kFraction = 23;
  static constexpr Int kBias = 127;
  static constexpr float kMax = __FLT_MAX__;
};
template <>
struct Traits<double> {
  using Int = std::int64_t;
  static constexpr int kFraction = 52;
  static constexpr Int kBias = 1023;
  static constexpr double kMax = __DBL_MAX__;
};

template <typename T, int N>
inline Mask<T, N> is_finite(Vector<T, N> v) {
  return magnitude<T, N>(v) <= Traits<T>::kMax;
}

template <typename T, int N>
inline Vector<T, N> where(Mask<T, N> mask, Vector<T, N> v) {
  return (Vector<T, N>)(mask & (Mask<T, N>)v);
}

/// Adds up counters from which each hit subtracts 1.
template <typename T, int N>
inline std::uint64_t total(Mask<T, N> counters) {
  std::int64_t sum = 0;
  for (int i = 0; i < N; ++i) sum -= counters[i];
  return static_cast<std::uint64_t>(sum);
}

template <typename T, int N>
inline T greatest(Vector<T, N> v, T than) {
  for (int i = 0; i < N; ++i) than = v[i] > than ? v[i] : than;
  return than;
}

/// Calls group<N>(begin, end) for vectors of the full width, then for the rest.
template <typename T, typename Group>
inline void each_group(std::size_t n, Group group) {
  const std::size_t whole = n - n % kWidth<T>;
  if (whole != 0) group.template operator()<kWidth<T>>(std::size_t{0}, whole);
  if (whole != n) group.template operator()<1>(whole, n);
}

template <typename T>
void errors(const T* b_from, const T* rounded_from, const T* d_from, std::size_t n,
            const PieceScale<T>* scale, T* absolute_to, T* relative_to, PieceFacts<T>* facts) {
  using F = Traits<T>;
  using Int = typename F::Int;
  const T epsilon = scale->epsilon;
  const T least_told = scale->least_told;
  // The bits of an exponent in a number. The reciprocal of the unit is a normal number, which callers ensure
  // by `least`.
  const Int least = (static_cast<Int>(scale->least) + F::kBias) << F::kFraction;
  const Int reciprocal_of_1 = (static_cast<Int>(scale->fraction) + F::kBias) << F::kFraction;
  constexpr Int kZeroExponent = F::kBias << F::kFraction;
  const Int exponent_bits = (2 * F::kBias + 1) * (Int{1} << F::kFraction);
  each_group<T>(n, [&]<int N>(std::size_t begin, std::size_t end) {
    using V = Vector<T, N>;
    using M = Mask<T, N>;
    V max_absolute = {}, max_units = {};
    M nan = {}, hundredth = {}, thousandth = {}, ten_thousandth = {}, unequal = {}, wrong = {};
    for (std::size_t i = begin; i < end; i += N) {
      const V b = load<T, N>(b_from + i);
      const V d = load<T, N>(d_from + i);
      const V absolute = magnitude<T, N>(d - b);
      const V size = magnitude<T, N>(b);
      const V relative = absolute / (size + epsilon);
      store<N>(absolute_to + i, absolute);
      store<N>(relative_to + i, relative);
      max_absolute = greater_of(absolute, max_absolute);
      nan += absolute != absolute;
      hundredth += relative < static_cast<T>(0.01);
      thousandth += relative < static_cast<T>(0.001);
      ten_thousandth += relative < static_cast<T>(0.0001);
      unequal += b != d;
      // A value that overflows in the device's type does not count as an error of the device.
      const M counts = is_finite<T, N>(b) & is_finite<T, N>(d) & (d != load<T, N>(rounded_from + i));
      const M exponent = (M)b & exponent_bits;
      const M larger = exponent > least ? exponent : M{} + least;
      const V units = where<T, N>(counts, absolute) * (V)(reciprocal_of_1 - (larger - kZeroExponent));
      max_units = greater_of(units, max_units);
      const V larger_size = greater_of(size, magnitude<T, N>(d));
      wrong += counts & (larger_size > least_told) & (absolute > static_cast<T>(0.25) * larger_size);
    }
    facts->max_absolute = greatest<T, N>(max_absolute, facts->max_absolute);
    facts->max_units = greatest<T, N>(max_units, facts->max_units);
    facts->nan += total<T, N>(nan);
    facts->within_hundredth += total<T, N>(hundredth);
    facts->within_thousandth += total<T, N>(thousandth);
    facts->within_ten_thousandth += total<T, N>(ten_thousandth);
    facts->unequal += total<T, N>(unequal);
    facts->wrong += total<T, N>(wrong);
  });
}

template <typename T>
void sorts(const T* b_from, const T* rounded_from, const T* d_from, const T* absolute_from,
           const T* relative_from, std::size_t n, const PieceLimits<T>* limits, T* squares_to,
           PieceSorts<T>* state) {
  const PieceLimits<T> limit = *limits;
  each_group<T>(n, [&]<int N>(std::size_t begin, std::size_t end) {
    using V = Vector<T, N>;
    using M = Mask<T, N>;
    V max_relative = {};
    M above = {}, below = {}, smalls = {}, normals = {}, small_errors = {}, relative_errors = {};
    for (std::size_t i = begin; i < end; i += N) {
      const V rounded = load<T, N>(rounded_from + i);
      const V d = load<T, N>(d_from + i);
      const V absolute = load<T, N>(absolute_from + i);
      const V relative = load<T, N>(relative_from + i);
      above += d > rounded;
      below += d < rounded;
      const M both = is_finite<T, N>(rounded) & is_finite<T, N>(d);
      const M near_zero = magnitude<T, N>(load<T, N>(b_from + i)) <= limit.small_value;
      const M small = both & near_zero;
      const M normal = both & ~near_zero;
      smalls += small;
      normals += normal;
      small_errors += small & (absolute > limit.small_tolerance);
      relative_errors += normal & (relative > limit.relative_tolerance);
      max_relative = greater_of(where<T, N>(normal, relative), max_relative);
      const V counted = where<T, N>(normal, absolute);
      store<N>(squares_to + i, counted * counted);
    }
    state->max_relative = greatest<T, N>(max_relative, state->max_relative);
    state->above += total<T, N>(above);
    state->below += total<T, N>(below);
    state->small += total<T, N>(smalls);
    state->normal += total<T, N>(normals);
    state->small_errors += total<T, N>(small_errors);
    state->relative_errors += total<T, N>(relative_errors);
  });
}

template <typename T>
void ulp(const T* b_from, const T* absolute_from, std::size_t n, const UlpScale<T>* scale, T* units_to,
         UlpFacts<T>* facts) {
  using F = Traits<T>;
  using Int = typename F::Int;
  const T threshold = scale->threshold;
  const Int least = scale->least;
  const Int of_zero = least > 0 ? least : 0;
  const Int fraction = scale->fraction;
  constexpr Int kMostField = 2 * F::kBias + 1;
  each_group<T>(n, [&]<int N>(std::size_t begin, std::size_t end) {
    using V = Vector<T, N>;
    using M = Mask<T, N>;
    V max = {};
    M above = {};
    for (std::size_t i = begin; i < end; i += N) {
      const V b = load<T, N>(b_from + i);
      const M own = (((M)b >> F::kFraction) & kMostField) - F::kBias;
      M exponent = own > least ? own : M{} + least;
      exponent = b == 0 ? M{} + of_zero : exponent;
      // 2^(fraction - exponent) as a number of the type: infinite beyond it, 0 for what is not finite.
      M field = fraction - exponent + F::kBias;
      field = field > 0 ? field : M{};
      field = field < kMostField ? field : M{} + kMostField;
      field = own > F::kBias ? M{} : field;
      const V units = load<T, N>(absolute_from + i) * (V)(field << F::kFraction);
      store<N>(units_to + i, units);
      max = greater_of(units, max);
      above += units > threshold;
    }
    facts->max = greatest<T, N>(max, facts->max);
    facts->above += total<T, N>(above);
  });
}

template <typename T>
T leaf_sum(const T* x, std::size_t n) {
  constexpr int kColumns = 8;
  constexpr int kOne = kWidth<T> < kColumns ? kWidth<T> : kColumns;
  std::size_t i = 0;
  T sum = 0;
  if (n >= kColumns) {
    Vector<T, kOne> columns[kColumns / kOne];
    for (int k = 0; k < kColumns / kOne; ++k) columns[k] = load<T, kOne>(x + k * kOne);
    for (i = kColumns; i + kColumns <= n; i += kColumns) {
      for (int k = 0; k < kColumns / kOne; ++k) columns[k] += load<T, kOne>(x + i + k * kOne);
    }
    T c[kColumns];
    __builtin_memcpy(c, columns, sizeof c);
    sum = ((c[0] + c[1]) + (c[2] + c[3])) + ((c[4] + c[5]) + (c[6] + c[7]));
  }
  for (; i < n; ++i) sum += x[i];
  return sum;
}

template <typename T, int N>
inline Mask<T, N> is_normal(Vector<T, N> size, Vector<T, N> d, const PieceRange<T>& range) {
  return (size > range.small_value) & (size < range.overflow) & is_finite<T, N>(d);
}

template <typename T>
void look(const T* b_from, const T* d_from, std::size_t n, const PieceRange<T>* range_of,
          PieceLook<T>* facts) {
  const PieceRange<T> range = *range_of;
  each_group<T>(n, [&]<int N>(std::size_t begin, std::size_t end) {
    using V = Vector<T, N>;
    using M = Mask<T, N>;
    V max_b = {}, max_d = {};
    M nan_b = {}, nan_d = {}, even = {}, zeros = {}, normals = {};
    for (std::size_t i = begin; i < end; i += N) {
      const V d = load<T, N>(d_from + i);
      const V size_b = magnitude<T, N>(load<T, N>(b_from + i));
      const V size_d = magnitude<T, N>(d);
      max_b = greater_of(size_b, max_b);
      max_d = greater_of(size_d, max_d);
      nan_b += size_b != size_b;
      nan_d += size_d != size_d;
      even += (size_b <= Traits<T>::kMax) & (size_d <= Traits<T>::kMax);
      zeros += d == 0;
      normals += is_normal<T, N>(size_b, d, range);
    }
    facts->max_reference = greatest<T, N>(max_b, facts->max_reference);
    facts->max_device = greatest<T, N>(max_d, facts->max_device);
    facts->nan_reference += total<T, N>(nan_b);
    facts->nan_device += total<T, N>(nan_d);
    facts->nonfinite += end - begin - total<T, N>(even);
    facts->zeros += total<T, N>(zeros);
    facts->normal += total<T, N>(normals);
  });
}

template <typename T>
std::size_t keep_normal(const T* b, const T* d, const T* values, std::size_t n, const PieceRange<T>* range_of,
                        T* kept_to) {
  const PieceRange<T> range = *range_of;
  std::size_t kept = 0;
  each_group<T>(n, [&]<int N>(std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; i += N) {
      const Mask<T, N> normal = is_normal<T, N>(magnitude<T, N>(load<T, N>(b + i)), load<T, N>(d + i), range);
      if (total<T, N>(normal) == N) {
        store<N>(kept_to + kept, load<T, N>(values + i));
        kept += N;
        continue;
      }
      for (int k = 0; k < N; ++k) {
        kept_to[kept] = values[i + static_cast<std::size_t>(k)];
        kept += normal[k] != 0 ? 1 : 0;
      }
    }
  });
  return kept;
}

void widen(const float* from, std::size_t n, double* out) {
  each_group<double>(n, [&]<int N>(std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; i += N) store<N>(out + i, load_double<float, N>(from + i));
  });
}

void round_to_float(const double* from, std::size_t n, double* out) {
  each_group<double>(n, [&]<int N>(std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; i += N) {
      const Vector<double, N> v = load<double, N>(from + i);
      if constexpr (N == 1) {
        out[i] = static_cast<float>(v[0]);
      } else {
        store<N>(out + i, to_doubles<float, N>(__builtin_convertvector(v, Vector<float, N>)));
      }
    }
  });
}

}  // namespace

constexpr JudgeKernels kKernels = {
    {look<float>, errors<float>, sorts<float>, ulp<float>, leaf_sum<float>, keep_normal<float>},
    {look<double>, errors<double>, sorts<double>, ulp<double>, leaf_sum<double>, keep_normal<double>},
    widen,
    round_to_float,
};

}  // namespace msprobe::precheck::MSPROBE_KERNELS
