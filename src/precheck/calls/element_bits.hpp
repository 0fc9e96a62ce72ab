// SPDX-License-Identifier: Apache-2.0
// Encodes numbers as elements of tensors.
#pragma once

#include <cstdint>

#include "tensor/dtype.hpp"
#include "tensor/float_form.hpp"

namespace msprobe::precheck {

/// The bits of a number that the type (float64, float32, float16 or bfloat16) holds exactly.
std::uint64_t element_bits(tensor::DType dtype, double value);

/// The nearest number of a type, also where that is beyond the largest finite one.
double nearest_element(const tensor::FloatForm& form, double value);

}  // namespace msprobe::precheck
