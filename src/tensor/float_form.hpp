// SPDX-License-Identifier: Apache-2.0
// The numbers that a floating-point type can hold, and rounding to the nearest of them.
#pragma once

#include <optional>

#include "tensor/dtype.hpp"

namespace msprobe::tensor {

struct FloatForm {
  int fraction;    // stored bits of the significand
  int least;       // the exponent of the smallest normal number
  double largest;  // finite number
  bool has_infinity;
};

/// Nothing for other types, and for float8_e8m0fnu, which has another form.
std::optional<FloatForm> float_form(DType dtype);

/// The nearest number with this many bits, ties to even; small numbers have fewer bits, and the smallest
/// become 0. The result may be larger than the largest number of the type.
double nearest_in(const FloatForm& form, double value);

}  // namespace msprobe::tensor
