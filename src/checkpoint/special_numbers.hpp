// SPDX-License-Identifier: Apache-2.0
// NaN and infinities, told by their bits: compilers make vectors of operations on integers, but not of
// comparisons of floating-point numbers, which may trap.
#pragma once

#include <bit>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace msprobe::checkpoint {

template <typename T>
using BitsOf = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

template <typename T>
inline constexpr BitsOf<T> kSignBit = std::bit_cast<BitsOf<T>>(T{-0.0});

/// The sign is set in the result where the number is NaN or infinite: then its exponent is all ones, and its
/// last bit more reaches the sign. `Bits` may hold several numbers, `exponent` and `last` are of each of
/// them.
template <typename Bits>
constexpr Bits special_signs(Bits bits, Bits exponent, Bits last) {
  return (bits & exponent) + last;
}

template <typename T>
constexpr BitsOf<T> special_sign(T value) {
  constexpr auto kExponent = std::bit_cast<BitsOf<T>>(std::numeric_limits<T>::infinity());
  return special_signs<BitsOf<T>>(std::bit_cast<BitsOf<T>>(value), kExponent, kSignBit<T> - kExponent);
}

}  // namespace msprobe::checkpoint
