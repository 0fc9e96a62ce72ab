// SPDX-License-Identifier: Apache-2.0
// Little-endian integers out of raw bytes, as every container format we read stores them.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace msprobe {

/// The little-endian integer at `data`, which must hold sizeof(T) bytes and needs no alignment.
template <std::unsigned_integral T>
T load_le(const std::byte* data) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i) value |= std::to_integer<std::uint64_t>(data[i]) << (8 * i);
  return static_cast<T>(value);
}

}  // namespace msprobe
