// SPDX-License-Identifier: Apache-2.0
#include "tensor/float_form.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace msprobe::tensor {

std::optional<FloatForm> float_form(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return FloatForm{52, -1022, std::numeric_limits<double>::max(), true};
    case DType::float32:
      return FloatForm{23, -126, std::numeric_limits<float>::max(), true};
    case DType::float16:
      return FloatForm{10, -14, 65504, true};
    case DType::bfloat16:
      return FloatForm{7, -126, 0x1.fep127, true};
    case DType::float8_e4m3fn:
      return FloatForm{3, -6, 448, false};
    case DType::float8_e5m2:
      return FloatForm{2, -14, 57344, true};
    case DType::float8_e4m3fnuz:
      return FloatForm{3, -7, 240, false};
    case DType::float8_e5m2fnuz:
      return FloatForm{2, -15, 57344, false};
    case DType::hifloat8:
      return FloatForm{1, -15, 32768, true};
    default:
      return {};
  }
}

double nearest_in(const FloatForm& form, double value) {
  constexpr int kDouble = 52;
  if (form.fraction == kDouble || value == 0 || !(std::fabs(value) <= 2 * form.largest)) return value;
  // The last place of this number is that of the result, so adding and subtracting it rounds to that place.
  const int exponent = std::max(std::ilogb(value), form.least);
  const double step = std::ldexp(1.5, exponent - form.fraction + kDouble);
  return value + step - step;
}

}  // namespace msprobe::tensor
