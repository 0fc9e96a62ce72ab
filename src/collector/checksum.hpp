// SPDX-License-Identifier: Apache-2.0
// Checksums over the element bytes of a tensor in row-major order.
#pragma once

#include <cstdint>

#include "collector/tensor_view.hpp"

namespace msprobe::collector {

std::uint32_t crc32_of(const TensorView& view);
/// The exclusive or of little-endian 64-bit words; zeros fill up the last one.
std::uint64_t xor_of(const TensorView& view);

}  // namespace msprobe::collector
