// SPDX-License-Identifier: Apache-2.0
// Encodes numbers as elements of tensors.
#pragma once

#include <cstdint>

#include "tensor/dtype.hpp"

namespace msprobe::precheck {

/// The bits of a number that the type (float64, float32, float16 or bfloat16) holds exactly.
std::uint64_t element_bits(tensor::DType dtype, double value);

}  // namespace msprobe::precheck
