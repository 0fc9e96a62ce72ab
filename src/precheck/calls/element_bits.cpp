// SPDX-License-Identifier: Apache-2.0
#include "precheck/calls/element_bits.hpp"

#include <bit>
#include <cmath>

namespace msprobe::precheck {

std::uint64_t element_bits(tensor::DType dtype, double value) {
  if (dtype == tensor::DType::float64) return std::bit_cast<std::uint64_t>(value);
  const std::uint32_t single = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  if (dtype == tensor::DType::float32) return single;
  if (dtype == tensor::DType::bfloat16) return single >> 16 | (std::isnan(value) ? 0x40U : 0U);
  const std::uint32_t sign = single >> 16 & 0x8000;
  if (std::isnan(value)) return sign | 0x7e00;
  const double size = std::fabs(value);
  if (std::isinf(value)) return sign | 0x7c00;
  if (size < 0x1p-14) return sign | static_cast<std::uint32_t>(size * 0x1p24);
  const int exponent = std::ilogb(size);
  return sign | static_cast<std::uint32_t>(exponent + 15) << 10 |
         (static_cast<std::uint32_t>(std::ldexp(size, 10 - exponent)) & 0x3ff);
}

double nearest_element(const tensor::FloatForm& form, double value) {
  if (!std::isfinite(value)) return value;
  const double nearest = tensor::nearest_in(form, value);
  return std::fabs(nearest) > form.largest ? std::copysign(HUGE_VAL, value) : nearest;
}

}  // namespace msprobe::precheck
