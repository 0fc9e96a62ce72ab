// SPDX-License-Identifier: Apache-2.0
// Checksums of bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace msprobe {

/// CRC-32 with the PKZIP polynomial, as in zip archives, dumps and zlib. `crc` is the checksum of the bytes
/// before (0: there were no bytes); `bytes` follow them.
std::uint32_t crc32(std::uint32_t crc, std::span<const std::byte> bytes);

/// CRC-32C, with the Castagnoli polynomial, as in the event files of TensorBoard.
std::uint32_t crc32c(std::span<const std::byte> bytes);

}  // namespace msprobe
