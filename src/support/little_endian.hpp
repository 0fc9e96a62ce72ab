// SPDX-License-Identifier: Apache-2.0
// Converts little-endian integers from and to raw bytes, as all container formats store them.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string>

namespace msprobe {

/// The little-endian integer at `data`, which must hold sizeof(T) bytes and needs no alignment.
template <std::unsigned_integral T>
T load_le(const std::byte* data) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value |= std::to_integer<std::uint64_t>(data[i]) << (8 * i);
  return static_cast<T>(value);
}

/// Appends sizeof(T) bytes to `out`.
template <std::unsigned_integral T>
void append_le(std::string& out, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i)
    out += static_cast<char>((static_cast<std::uint64_t>(value) >> (8 * i)) & 0xff);
}

}  // namespace msprobe
