// SPDX-License-Identifier: Apache-2.0
// Vector types of the compiler, for files that the build compiles once for each instruction set. The build
// sets MSPROBE_KERNELS (a namespace) and MSPROBE_VECTOR_BYTES (0: one element at a time). Everything here is
// in a separate namespace for each instruction set, so that no function is shared: tensor/kernels.hpp says
// why.
#pragma once

#include <cstdint>

namespace msprobe::MSPROBE_KERNELS {
namespace {

/// The integer that is as wide as a number, and its bits without the sign.
template <typename T>
struct NumberBits;
template <>
struct NumberBits<float> {
  using Int = std::int32_t;
  static constexpr Int kMagnitude = 0x7fffffff;
};
template <>
struct NumberBits<double> {
  using Int = std::int64_t;
  static constexpr Int kMagnitude = 0x7fffffffffffffff;
};

template <typename T, int N>
struct VectorOf {
  typedef T type __attribute__((vector_size(sizeof(T) * N)));
};
template <typename T, int N>
using Vector = typename VectorOf<T, N>::type;
template <typename T, int N>
using Mask = typename VectorOf<typename NumberBits<T>::Int, N>::type;  // 0 or -1 for each element

/// The number of elements of T in one vector.
template <typename T>
constexpr int kWidth = MSPROBE_VECTOR_BYTES / sizeof(T) > 1 ? MSPROBE_VECTOR_BYTES / sizeof(T) : 1;

template <typename T, int N>
inline Vector<T, N> load(const T* from) {
  Vector<T, N> v;
  __builtin_memcpy(&v, from, sizeof v);
  return v;
}

template <int N, typename T, typename V>
inline void store(T* to, V v) {
  static_assert(sizeof(V) == sizeof(T) * N);
  __builtin_memcpy(to, &v, sizeof v);
}

/// Converts element by element, because GCC 12 makes one instruction of this, but three of
/// __builtin_convertvector.
template <typename T, int N>
inline Vector<double, N> to_doubles(Vector<T, N> v) {
  if constexpr (N == 1) {
    return Vector<double, N>{v[0]};
  } else if constexpr (N == 2) {
    return Vector<double, N>{v[0], v[1]};
  } else if constexpr (N == 4) {
    return Vector<double, N>{v[0], v[1], v[2], v[3]};
  } else {
    static_assert(N == 8);
    return Vector<double, N>{v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7]};
  }
}

template <typename T, int N>
inline Vector<double, N> load_double(const T* from) {
  return to_doubles<T, N>(load<T, N>(from));
}

template <typename T, int N>
inline Vector<T, N> magnitude(Vector<T, N> v) {
  return (Vector<T, N>)((Mask<T, N>)v & NumberBits<T>::kMagnitude);
}

/// Keeps `a` where it is greater, else `b`, so that a NaN in `a` never wins.
template <typename V>
inline V greater_of(V a, V b) {
  return a > b ? a : b;
}

}  // namespace
}  // namespace msprobe::MSPROBE_KERNELS
