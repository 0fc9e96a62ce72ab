// SPDX-License-Identifier: Apache-2.0
// Finds NaN and infinities by their bits: compilers vectorize operations on integers, but not comparisons of
// floating-point numbers, which may trap.
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

/// Sets the sign in the result if the number is NaN or infinite: the exponent of such a number is all ones,
/// so adding its last bit carries into the sign. `Bits` may hold several numbers; `exponent` and `last` then
/// cover each of them.
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
