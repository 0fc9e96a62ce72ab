// SPDX-License-Identifier: Apache-2.0
// The element loops of DifferenceAccumulator and StatisticsAccumulator, compiled once for each instruction
// set. The build sets MSPROBE_KERNELS (the namespace), MSPROBE_VECTOR_BYTES (0: one element at a time) and
// the matching compiler options. All builds give identical bits: element i belongs to lane i % 16, each lane
// sees its elements in order, and no operation is fused or reordered.
//
// kernels.hpp explains why this file may include only that header and vectors.hpp.
#include "tensor/kernels.hpp"

#include "tensor/vectors.hpp"

namespace msprobe::tensor::MSPROBE_KERNELS {
namespace {

using namespace msprobe::MSPROBE_KERNELS;

using Int64 = std::int64_t;
using UInt32 = std::uint32_t;
using UInt64 = std::uint64_t;

template <typename T>
struct Traits;
template <>
struct Traits<float> {
  static constexpr float kMax = __FLT_MAX__;
  static constexpr float kEpsilon = __FLT_EPSILON__;
};
template <>
struct Traits<double> {
  static constexpr double kMax = __DBL_MAX__;
  static constexpr double kEpsilon = __DBL_EPSILON__;
};

template <typename V>
inline V lesser_of(V a, V b) {
  return a < b ? a : b;
}

/// The number of hits in counters that start at 0 and change by -1 for each hit. The counters are as wide as
/// the elements, which is enough for the callers' blocks.
template <typename T, int N>
inline UInt64 total(Mask<T, N> counters) {
  typename NumberBits<T>::Int lanes[N];
  __builtin_memcpy(lanes, &counters, sizeof lanes);
  typename NumberBits<T>::Int sum = 0;
  for (int i = 0; i < N; ++i) sum += lanes[i];
  return static_cast<UInt64>(sum);
}

/// Calls group<N, U>(first element, rows, first lane) so that it sees every element once: first N * U lanes
/// down all full rows of 16 elements, then the rest lane by lane.
template <int N, int U, typename Group>
inline void each_group(std::size_t n, Group group) {
  const std::size_t rows = n / kLanes;
  for (std::size_t lane = 0; lane < kLanes; lane += N * U) group.template operator()<N, U>(lane, rows, lane);
  for (std::size_t lane = 0; lane < n % kLanes; ++lane) {
    group.template operator()<1, 1>(rows * kLanes + lane, 1, lane);
  }
}

/// Prefetches a block of memory from `ahead` on, a little in each step of each_group, so that the next block
/// arrives while this one is processed. The address may be past the data, because nothing is read.
template <typename T, int N>
inline void prefetch(const void* ahead, std::size_t rows, std::size_t lane, std::size_t row) {
  constexpr std::size_t kCacheLine = 64;
  const auto address = reinterpret_cast<std::uintptr_t>(ahead) + (lane * rows + row * N) * sizeof(T);
  for (std::size_t line = 0; line < N * sizeof(T); line += kCacheLine)
    __builtin_prefetch(reinterpret_cast<const void*>(address + line));
}

template <typename T>
constexpr int kUnroll = kLanes / kWidth<T> < 4 ? kLanes / kWidth<T> : 2;
/// Each addition waits for the one before, so this many chains keep the adders busy.
constexpr int kChains = kLanes / kWidth<double> < 4 ? kLanes / kWidth<double> : 4;

template <typename T>
void count_nonfinite(const T* x, std::size_t n, SideState<T>* state) {
  each_group<kWidth<T>, 1>(n, [&]<int N, int U>(std::size_t at, std::size_t rows, std::size_t) {
    const T infinity = static_cast<T>(__builtin_inf());
    Mask<T, N> nan = {}, pos_inf = {}, neg_inf = {};
    for (std::size_t row = 0; row < rows; ++row) {
      const Vector<T, N> v = load<T, N>(x + at + row * kLanes);
      nan -= v != v;
      pos_inf -= v == infinity;
      neg_inf -= v == -infinity;
    }
    state->nan += total<T, N>(nan);
    state->pos_inf += total<T, N>(pos_inf);
    state->neg_inf += total<T, N>(neg_inf);
  });
}

/// The extrema; with kCounts also the counts of small numbers, and returns that of finite ones.
template <bool kCounts, typename T>
inline UInt64 extrema_and_counts(const T* x, std::size_t n, SideState<T>* state) {
  UInt64 finite_count = 0;
  const T limit = state->small;
  each_group<kWidth<T>, kUnroll<T>>(n, [&]<int N, int U>(std::size_t at, std::size_t rows, std::size_t lane) {
    using V = Vector<T, N>;
    V max[U], min[U];
    Mask<T, N> zero = {}, small = {}, finite = {};
    for (int u = 0; u < U; ++u) {
      max[u] = load<T, N>(state->max + lane + u * N);
      min[u] = load<T, N>(state->min + lane + u * N);
    }
    for (std::size_t row = 0; row < rows; ++row) {
      for (int u = 0; u < U; ++u) {
        const V v = load<T, N>(x + at + row * kLanes + u * N);
        max[u] = greater_of(v, max[u]);
        min[u] = lesser_of(v, min[u]);
        if constexpr (kCounts) {
          const V size = magnitude<T, N>(v);
          zero -= size == 0;
          small -= size < limit;
          finite -= size <= Traits<T>::kMax;
        }
      }
    }
    for (int u = 0; u < U; ++u) {
      store<N>(state->max + lane + u * N, max[u]);
      store<N>(state->min + lane + u * N, min[u]);
    }
    const UInt64 zeros = total<T, N>(zero);
    state->zero += zeros;
    state->below_small += total<T, N>(small) - zeros;
    finite_count += total<T, N>(finite);
  });
  return finite_count;
}

template <typename T>
bool side(const T* x, std::size_t n, SideState<T>* state) {
  if (extrema_and_counts<true>(x, n, state) == n) return false;
  count_nonfinite(x, n, state);
  return true;
}

template <typename T>
void extrema(const T* x, std::size_t n, SideState<T>* state) {
  extrema_and_counts<false>(x, n, state);
}

template <typename T>
void sums(const T* x, std::size_t n, const void* ahead, SumState* state) {
  each_group<kWidth<double>, kChains>(n,
                                      [&]<int N, int U>(std::size_t at, std::size_t rows, std::size_t lane) {
                                        using V = Vector<double, N>;
                                        V sum[U], squares[U];
                                        for (int u = 0; u < U; ++u) {
                                          sum[u] = load<double, N>(state->sum + lane + u * N);
                                          squares[u] = load<double, N>(state->squares + lane + u * N);
                                        }
                                        for (std::size_t row = 0; row < rows; ++row) {
                                          prefetch<T, N * U>(ahead, rows, lane, row);
                                          for (int u = 0; u < U; ++u) {
                                            const V v = load_double<T, N>(x + at + row * kLanes + u * N);
                                            sum[u] += v;
                                            squares[u] += v * v;
                                          }
                                        }
                                        for (int u = 0; u < U; ++u) {
                                          store<N>(state->sum + lane + u * N, sum[u]);
                                          store<N>(state->squares + lane + u * N, squares[u]);
                                        }
                                      });
}

template <typename T>
void pair_sums(const T* target, const T* golden, std::size_t n, const void* target_ahead,
               const void* golden_ahead, PairState* state) {
  each_group<kWidth<double>, 1>(n, [&]<int N, int U>(std::size_t at, std::size_t rows, std::size_t lane) {
    using V = Vector<double, N>;
    V sum_t = load<double, N>(state->target.sum + lane);
    V sum_g = load<double, N>(state->golden.sum + lane);
    V squares_t = load<double, N>(state->target.squares + lane);
    V squares_g = load<double, N>(state->golden.squares + lane);
    V dot = load<double, N>(state->dot + lane);
    V squares_d = load<double, N>(state->squares_difference + lane);
    V max_abs = load<double, N>(state->max_abs + lane);
    for (std::size_t row = 0; row < rows; ++row) {
      prefetch<T, N>(target_ahead, rows, lane, row);
      prefetch<T, N>(golden_ahead, rows, lane, row);
      const V t = load_double<T, N>(target + at + row * kLanes);
      const V g = load_double<T, N>(golden + at + row * kLanes);
      const V d = t - g;
      sum_t += t;
      sum_g += g;
      squares_t += t * t;
      squares_g += g * g;
      dot += t * g;
      squares_d += d * d;
      max_abs = greater_of(magnitude<double, N>(d), max_abs);
    }
    store<N>(state->target.sum + lane, sum_t);
    store<N>(state->golden.sum + lane, sum_g);
    store<N>(state->target.squares + lane, squares_t);
    store<N>(state->golden.squares + lane, squares_g);
    store<N>(state->dot + lane, dot);
    store<N>(state->squares_difference + lane, squares_d);
    store<N>(state->max_abs + lane, max_abs);
  });
}

template <typename T>
void relative(const T* target, const T* golden, std::size_t n, RelativeState<T>* state) {
  each_group<kWidth<T>, kUnroll<T>>(n, [&]<int N, int U>(std::size_t at, std::size_t rows, std::size_t lane) {
    using V = Vector<T, N>;
    const Mask<T, N> epsilon = (Mask<T, N>)(V{} + Traits<T>::kEpsilon);
    V max[U];
    Mask<T, N> below_1 = {}, below_5 = {}, unequal = {};
    for (int u = 0; u < U; ++u) max[u] = load<T, N>(state->max + lane + u * N);
    for (std::size_t row = 0; row < rows; ++row) {
      for (int u = 0; u < U; ++u) {
        const V t = load<T, N>(target + at + row * kLanes + u * N);
        const V g = load<T, N>(golden + at + row * kLanes + u * N);
        const V shift = (V)((g == 0) & epsilon);
        const V divisor = g + shift;
        const V error = magnitude<T, N>(((t + shift) - divisor) / divisor);
        max[u] = greater_of(error, max[u]);
        below_1 -= error < static_cast<T>(0.001);
        below_5 -= error < static_cast<T>(0.005);
        unequal -= t != g;
      }
    }
    for (int u = 0; u < U; ++u) store<N>(state->max + lane + u * N, max[u]);
    state->below_one_thousandth += total<T, N>(below_1);
    state->below_five_thousandths += total<T, N>(below_5);
    state->unequal += total<T, N>(unequal);
  });
}

template <typename T>
void mask(const T* target, const T* golden, std::size_t n, T* target_out, T* golden_out,
          MismatchState* state) {
  each_group<kWidth<T>, 1>(n, [&]<int N, int U>(std::size_t at, std::size_t rows, std::size_t) {
    using V = Vector<T, N>;
    const T infinity = static_cast<T>(__builtin_inf());
    Mask<T, N> nonfinite = {}, infinity_sign = {}, unequal = {};
    for (std::size_t row = 0; row < rows; ++row) {
      const std::size_t i = at + row * kLanes;
      const V t = load<T, N>(target + i);
      const V g = load<T, N>(golden + i);
      const Mask<T, N> finite =
          (magnitude<T, N>(t) <= Traits<T>::kMax) & (magnitude<T, N>(g) <= Traits<T>::kMax);
      const Mask<T, N> nan_t = t != t, nan_g = g != g;
      const Mask<T, N> inf_t = magnitude<T, N>(t) == infinity, inf_g = magnitude<T, N>(g) == infinity;
      nonfinite -= (nan_t ^ nan_g) | (inf_t ^ inf_g);
      infinity_sign -= inf_t & inf_g & (t != g);
      unequal -= ~finite & (t != g) & ~(nan_t & nan_g);
      store<N>(target_out + i, (Mask<T, N>)t & finite);
      store<N>(golden_out + i, (Mask<T, N>)g & finite);
    }
    state->nonfinite += total<T, N>(nonfinite);
    state->infinity_sign += total<T, N>(infinity_sign);
    state->unequal += total<T, N>(unequal);
  });
}

// 64-bit integers: their conversion to double has no vector form before AVX-512, so these are plain loops.

template <typename T>
inline UInt64 distance(T a, T b) {
  return a > b ? static_cast<UInt64>(a) - static_cast<UInt64>(b)
               : static_cast<UInt64>(b) - static_cast<UInt64>(a);
}

/// Calls step(element, lane) for every element, in order. Each kernel works on a copy of its state, so that
/// the compiler can exclude that a counter is among the elements.
template <typename Step>
inline void each_element(std::size_t n, Step step) {
  std::size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) step(i + lane, lane);
  }
  for (; i < n; ++i) step(i, i % kLanes);
}

template <typename T>
bool side_integer(const T* x, std::size_t n, SideState<T>* state) {
  SideState<T> s = *state;
  each_element(n, [&](std::size_t i, std::size_t lane) {
    s.max[lane] = greater_of(x[i], s.max[lane]);
    s.min[lane] = lesser_of(x[i], s.min[lane]);
    s.zero += x[i] == 0;
  });
  *state = s;
  return false;
}

template <typename T>
void sums_integer(const T* x, std::size_t n, const void*, SumState* state) {
  SumState s = *state;
  each_element(n, [&](std::size_t i, std::size_t lane) {
    const double v = static_cast<double>(x[i]);
    s.sum[lane] += v;
    s.squares[lane] += v * v;
  });
  *state = s;
}

template <typename T>
void pair_sums_integer(const T* target, const T* golden, std::size_t n, const void*, const void*,
                       PairState* state) {
  PairState s = *state;
  each_element(n, [&](std::size_t i, std::size_t lane) {
    const double t = static_cast<double>(target[i]);
    const double g = static_cast<double>(golden[i]);
    const double d = static_cast<double>(distance(target[i], golden[i]));
    s.target.sum[lane] += t;
    s.golden.sum[lane] += g;
    s.target.squares[lane] += t * t;
    s.golden.squares[lane] += g * g;
    s.dot[lane] += t * g;
    s.squares_difference[lane] += d * d;
    s.max_abs[lane] = greater_of(d, s.max_abs[lane]);
  });
  *state = s;
}

template <typename T>
void relative_integer(const T* target, const T* golden, std::size_t n, RelativeState<T>* state) {
  RelativeState<T> s = *state;
  each_element(n, [&](std::size_t i, std::size_t lane) {
    const double t = static_cast<double>(target[i]);
    const double g = static_cast<double>(golden[i]);
    const double shift = golden[i] == 0 ? __DBL_EPSILON__ : 0.0;
    const double divisor = g + shift;
    // Neighbouring integers beyond 2^53 can become the same double.
    const double difference =
        t == g ? static_cast<double>(distance(target[i], golden[i])) : (t + shift) - divisor;
    const double error = __builtin_fabs(difference / divisor);
    s.max[lane] = greater_of(error, s.max[lane]);
    s.below_one_thousandth += error < 0.001;
    s.below_five_thousandths += error < 0.005;
    s.unequal += target[i] != golden[i];
  });
  *state = s;
}

void half_to_float(const void* half, std::size_t n, float* out) {
  const char* from = static_cast<const char*>(half);
  constexpr UInt32 kRebias = (127u - 15u) << 23;
  constexpr UInt32 kExponent = 0x7c00u << 13;
  constexpr UInt32 kDenormalBase = (127u - 14u) << 23;
  for (std::size_t i = 0; i < n; ++i) {
    std::uint16_t h;
    __builtin_memcpy(&h, from + 2 * i, sizeof h);
    const UInt32 sign = static_cast<UInt32>(h & 0x8000) << 16;
    const UInt32 shifted = static_cast<UInt32>(h & 0x7fff) << 13;
    const UInt32 exponent = shifted & kExponent;
    // A denormal half is its mantissa times 2^-24: put the mantissa after 2^-14 and subtract 2^-14.
    const UInt32 raised = shifted + kDenormalBase;
    float value, base;
    __builtin_memcpy(&value, &raised, sizeof value);
    __builtin_memcpy(&base, &kDenormalBase, sizeof base);
    value -= base;
    UInt32 denormal;
    __builtin_memcpy(&denormal, &value, sizeof denormal);
    const UInt32 normal = shifted + kRebias + (exponent == kExponent ? kRebias : 0);
    const UInt32 bits = sign | (exponent == 0 ? denormal : normal);
    __builtin_memcpy(out + i, &bits, sizeof bits);
  }
}

void bfloat16_to_float(const void* bfloat16, std::size_t n, float* out) {
  const char* from = static_cast<const char*>(bfloat16);
  for (std::size_t i = 0; i < n; ++i) {
    std::uint16_t h;
    __builtin_memcpy(&h, from + 2 * i, sizeof h);
    const UInt32 bits = static_cast<UInt32>(h) << 16;
    __builtin_memcpy(out + i, &bits, sizeof bits);
  }
}

}  // namespace

constexpr Kernels kKernels = {
    {side<float>, extrema<float>, sums<float>, pair_sums<float>, relative<float>, mask<float>},
    {side<double>, extrema<double>, sums<double>, pair_sums<double>, relative<double>, mask<double>},
    {side_integer<Int64>, nullptr, sums_integer<Int64>, pair_sums_integer<Int64>, relative_integer<Int64>,
     nullptr},
    {side_integer<UInt64>, nullptr, sums_integer<UInt64>, pair_sums_integer<UInt64>, relative_integer<UInt64>,
     nullptr},
    half_to_float,
    bfloat16_to_float,
};

}  // namespace msprobe::tensor::MSPROBE_KERNELS
