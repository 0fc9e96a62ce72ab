// SPDX-License-Identifier: Apache-2.0
// Copies elements of a strided tensor into a contiguous row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace msprobe::tensor {

/// Copies `count` elements of `size` bytes (1, 2, 4, 8 or 16) that are `step` bytes apart; the step may be 0
/// or negative.
void gather(const std::byte* from, std::int64_t step, std::size_t size, std::size_t count, std::byte* to);

/// Changes the sign of every `every`-th number from the one with index `first` on; each has `size` bytes (1,
/// 2, 4 or 8) in the machine's order.
void flip_signs(std::span<std::byte> numbers, std::size_t size, std::size_t first, std::size_t every);

}  // namespace msprobe::tensor
