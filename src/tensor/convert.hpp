// SPDX-License-Identifier: Apache-2.0
// Converts raw element bytes to the working types of the kernels.
#pragma once

#include <cstddef>
#include <span>

#include "tensor/dtype.hpp"

namespace msprobe::tensor {

/// Widens float32, float16, bfloat16 and every float8 type exactly to float. `raw` holds out.size() elements
/// in the machine's byte order, with any alignment.
void to_float(DType dtype, std::span<const std::byte> raw, std::span<float> out);

/// Widens every real type to double (64-bit integers round to nearest). A complex element gives two doubles,
/// real and imaginary, so that out.size() is twice the number of elements.
void to_double(DType dtype, std::span<const std::byte> raw, std::span<double> out);

/// Rounds to the nearest elements of float16, float32, float64, complex64 or complex128, ties to even;
/// `values` are as to_double() gives them. `raw` has room for all of them.
void from_double(DType dtype, std::span<const double> values, std::span<std::byte> raw);

/// Reverses the bytes of each component (`info(dtype).size` bytes; half of that for complex types) in place.
void swap_bytes(DType dtype, std::span<std::byte> raw);

}  // namespace msprobe::tensor
