// SPDX-License-Identifier: Apache-2.0
// CRC-32 (PKZIP polynomial, as zlib's) by the processor's own means where it has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace msprobe {

/// The checksum of what `crc` is the checksum of (0: nothing) with the bytes behind it.
std::uint32_t crc32(std::uint32_t crc, std::span<const std::byte> bytes);

/// The same, by tables alone.
std::uint32_t crc32_portable(std::uint32_t crc, std::span<const std::byte> bytes);

/// CRC-32C, of the polynomial of Castagnoli.
std::uint32_t crc32c(std::span<const std::byte> bytes);

}  // namespace msprobe
