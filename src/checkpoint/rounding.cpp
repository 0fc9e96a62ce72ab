// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/rounding.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>

namespace msprobe::checkpoint {
namespace {

using tensor::DType;

/// What a type of floating-point numbers can hold.
struct FloatForm {
  int digits;      // of the significand, with the one that is not stored
  int least;       // the exponent of its smallest normal number
  double largest;  // finite number
  bool has_infinity;
};

std::optional<FloatForm> form_of(DType dtype) {
  switch (dtype) {
    case DType::float64:
      return FloatForm{53, -1022, std::numeric_limits<double>::max(), true};
    case DType::float32:
      return FloatForm{24, -126, std::numeric_limits<float>::max(), true};
    case DType::float16:
      return FloatForm{11, -14, 65504.0, true};
    case DType::bfloat16:
      return FloatForm{8, -126, 0x1.fep127, true};
    case DType::float8_e4m3fn:
      return FloatForm{4, -6, 448.0, false};
    case DType::float8_e5m2:
      return FloatForm{3, -14, 57344.0, true};
    default:
      return {};
  }
}

double rounded(double value, const FloatForm& form) {
  if (form.digits == 53 || value == 0 || std::isnan(value)) return value;
  double result = value;
  if (std::fabs(value) <= 2 * form.largest) {
    // A number whose last place is that of the result: adding it and taking it away rounds to that place.
    const int exponent = std::max(std::ilogb(value), form.least);
    const double step = std::ldexp(1.5, exponent - form.digits + 1 + 52);
    result = value + step - step;
  }
  if (std::fabs(result) <= form.largest) return result;
  return form.has_infinity ? std::copysign(std::numeric_limits<double>::infinity(), value)
                           : std::numeric_limits<double>::quiet_NaN();
}

/// The same for the pair that most checkpoints are of, without a branch an element.
float to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>((bits + 0x7fffU + ((bits >> 16) & 1U)) & 0xffff0000U);
}

bool same(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

bool rounds_to(double wide, double narrow, const FloatForm& form, bool by_float) {
  if (same(rounded(wide, form), narrow)) return true;
  // PyTorch rounds double numbers to float first.
  return by_float && same(rounded(rounded(wide, *form_of(DType::float32)), form), narrow);
}

bool is_bfloat16_of(float wide, float narrow) {
  return wide == wide ? to_bfloat16(wide) == narrow : narrow != narrow;
}

template <typename T>
void check_piece(std::span<const T> wide, std::span<const T> narrow, DType dtype, std::int64_t seen,
                 Unrounded& result) {
  const FloatForm form = *form_of(dtype);
  const bool by_float = std::is_same_v<T, double> && dtype != DType::float32;
  const auto fits = [&](std::size_t i) {
    if constexpr (std::is_same_v<T, float>) {
      if (dtype == DType::bfloat16) return is_bfloat16_of(wide[i], narrow[i]);
    }
    return rounds_to(static_cast<double>(wide[i]), static_cast<double>(narrow[i]), form, by_float);
  };
  std::uint64_t unequal = 0;
  for (std::size_t i = 0; i < wide.size(); ++i) unequal += fits(i) ? 0 : 1;
  result.count += unequal;
  if (unequal == 0 || result.first >= 0) return;
  std::size_t first = 0;
  while (fits(first)) ++first;
  result.first = seen + static_cast<std::int64_t>(first);
}

}  // namespace

double rounded_to(double value, DType dtype) {
  const auto form = form_of(dtype);
  return form ? rounded(value, *form) : value;
}

RoundingCheck::RoundingCheck(DType first, DType second) : first_(first), second_(second) {
  const bool possible = first != second && form_of(first) && form_of(second);
  // From a wider type; where neither is, both ways are tried.
  first_to_second_.tried = possible && tensor::info(first).size >= tensor::info(second).size;
  second_to_first_.tried = possible && tensor::info(second).size >= tensor::info(first).size;
}

Unrounded RoundingCheck::result() const {
  const bool second =
      second_to_first_.tried && (!first_to_second_.tried || second_to_first_.count < first_to_second_.count);
  return second ? second_to_first_ : first_to_second_;
}

template <typename T>
void RoundingCheck::add_pieces(std::span<const T> x, std::span<const T> y) {
  if (first_to_second_.tried) check_piece(x, y, second_, seen_, first_to_second_);
  if (second_to_first_.tried) check_piece(y, x, first_, seen_, second_to_first_);
  seen_ += static_cast<std::int64_t>(x.size());
}

template void RoundingCheck::add_pieces(std::span<const float>, std::span<const float>);
template void RoundingCheck::add_pieces(std::span<const double>, std::span<const double>);

}  // namespace msprobe::checkpoint
