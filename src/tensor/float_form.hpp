// SPDX-License-Identifier: Apache-2.0
// What the numbers of a floating-point type can be, and the nearest of them.
#pragma once

#include <optional>

#include "tensor/dtype.hpp"

namespace msprobe::tensor {

struct FloatForm {
  int fraction;    // bits that are stored of the significand
  int least;       // the exponent of the smallest normal number
  double largest;  // finite number
  bool has_infinity;
};

/// Nothing for what is no floating-point type, or has another form (float8_e8m0fnu).
std::optional<FloatForm> float_form(DType dtype);

/// The nearest number with so many bits, ties to even; small ones have fewer, and are 0 at last. What is
/// returned may be larger than any of the type.
double nearest_in(const FloatForm& form, double value);

}  // namespace msprobe::tensor
