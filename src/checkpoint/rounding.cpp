// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/rounding.hpp"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>

#include "tensor/float_form.hpp"

namespace msprobe::checkpoint {
namespace {

using tensor::DType;
using tensor::FloatForm;

/// The types that PyTorch and NumPy round to in one way.
std::optional<FloatForm> form_of(DType dtype) {
  switch (dtype) {
    case DType::float64:
    case DType::float32:
    case DType::float16:
    case DType::bfloat16:
    case DType::float8_e4m3fn:
    case DType::float8_e5m2:
      return tensor::float_form(dtype);
    default:
      return {};
  }
}

double rounded(double value, const FloatForm& form) {
  const double result = tensor::nearest_in(form, value);
  if (std::isnan(result) || std::fabs(result) <= form.largest) return result;
  return form.has_infinity ? std::copysign(std::numeric_limits<double>::infinity(), value)
                           : std::numeric_limits<double>::quiet_NaN();
}

/// The same for the pairs that most checkpoints are of, without a branch an element.
float to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return std::bit_cast<float>((bits + 0x7fffU + ((bits >> 16) & 1U)) & 0xffff0000U);
}

float to_half(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const float magnitude = std::fabs(value);
  const float normal = std::bit_cast<float>((bits + 0xfffU + ((bits >> 13) & 1U)) & 0xffffe000U);
  // The last place of 0.5 is that of the numbers below the normal ones.
  const float small = std::copysign(magnitude + 0.5F - 0.5F, value);
  const float large = std::copysign(std::numeric_limits<float>::infinity(), value);
  return magnitude < 0x1p-14F ? small : magnitude < 65520.0F ? normal : large;
}

bool same(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

bool rounds_to(double wide, double narrow, const FloatForm& form, bool by_float) {
  if (same(rounded(wide, form), narrow)) return true;
  // PyTorch rounds double numbers to float first.
  return by_float && same(rounded(rounded(wide, *form_of(DType::float32)), form), narrow);
}

template <typename T, typename Fits>
void count_misfits(std::span<const T> wide, std::span<const T> narrow, std::int64_t seen, Unrounded& result,
                   const Fits& fits) {
  std::uint32_t unequal = 0;  // of a piece, so that it is counted in vectors
  for (std::size_t i = 0; i < wide.size(); ++i) unequal += fits(wide[i], narrow[i]) ? 0U : 1U;
  result.count += unequal;
  if (unequal == 0 || result.first >= 0) return;
  std::size_t first = 0;
  while (fits(wide[first], narrow[first])) ++first;
  result.first = seen + static_cast<std::int64_t>(first);
}

template <typename T>
void check_piece(std::span<const T> wide, std::span<const T> narrow, DType dtype, std::int64_t seen,
                 Unrounded& result) {
  const auto by = [&](auto round) {
    count_misfits(wide, narrow, seen, result, [&](T value, T other) {
      // Without branches, so that the compiler makes vectors of it. Rounding may make anything of NaN.
      const bool equal = static_cast<bool>((round(value) == other) & !std::isnan(value));
      return static_cast<bool>(equal | (std::isnan(value) & std::isnan(other)));
    });
  };
  if constexpr (std::is_same_v<T, float>) {
    if (dtype == DType::bfloat16) return by(to_bfloat16);
    if (dtype == DType::float16) return by(to_half);
  } else if (dtype == DType::float32) {
    return by([](double value) { return static_cast<double>(static_cast<float>(value)); });
  }
  const FloatForm form = *form_of(dtype);
  count_misfits(wide, narrow, seen, result, [&](T value, T other) {
    return rounds_to(static_cast<double>(value), static_cast<double>(other), form, std::is_same_v<T, double>);
  });
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
