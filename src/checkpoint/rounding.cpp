// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/rounding.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>

#include "checkpoint/special_numbers.hpp"
#include "tensor/float_form.hpp"

namespace msprobe::checkpoint {
namespace {

using tensor::DType;
using tensor::FloatForm;

// A coarse type rounds every value near 1 to 1, and norms are near 1, so fewer distinct values prove nothing.
constexpr std::size_t kFewestValues = 8;

/// The types that PyTorch and NumPy round to in the same way.
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

/// The same rounding for the most frequent pairs of types, from bits to bits: compilers vectorize comparisons
/// of integers, but not those of floating-point numbers, which may trap.
std::uint32_t to_bfloat16(std::uint32_t bits) {
  return (bits + 0x7fffU + ((bits >> 16) & 1U)) & 0xffff0000U;
}

std::uint32_t to_half(std::uint32_t bits) {
  const std::uint32_t magnitude = bits & 0x7fffffffU;
  const std::uint32_t sign = bits ^ magnitude;
  const std::uint32_t normal = (magnitude + 0xfffU + ((bits >> 13) & 1U)) & 0xffffe000U;
  // The last place of 0.5 is the spacing of half-precision denormals, so adding 0.5 rounds to it.
  const auto small = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F - 0.5F);
  constexpr auto kLeastNormal = std::bit_cast<std::uint32_t>(0x1p-14F);
  constexpr auto kFirstInfinite = std::bit_cast<std::uint32_t>(65520.0F);
  constexpr auto kInfinite = std::bit_cast<std::uint32_t>(std::numeric_limits<float>::infinity());
  return sign | (magnitude < kLeastNormal ? small : magnitude < kFirstInfinite ? normal : kInfinite);
}

bool same(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

bool rounds_to(double wide, double narrow, const FloatForm& form, bool by_float) {
  if (same(rounded(wide, form), narrow)) return true;
  // PyTorch rounds double numbers to float first.
  return by_float && same(rounded(rounded(wide, *form_of(DType::float32)), form), narrow);
}

double half_step_at(double value, const FloatForm& form) {
  const int exponent = value == 0 ? form.least : std::max(std::ilogb(value), form.least);
  return std::ldexp(0.5, exponent - form.fraction);
}

/// True if both may be roundings of one number, that is, if their half steps meet.
bool may_be_one(double a, const FloatForm& form_a, double b, const FloatForm& form_b) {
  if (same(a, b)) return true;
  if (!std::isfinite(a) || !std::isfinite(b)) return rounded(b, form_a) == a || rounded(a, form_b) == b;
  return std::fabs(a - b) <= half_step_at(a, form_a) + half_step_at(b, form_b);
}

/// Finds the first of the elements that do not fit, and counts them.
template <typename T, typename Fits>
void count_misfits(std::span<const T> wide, std::span<const T> narrow, std::int64_t seen, Unrounded& result,
                   const Fits& fits) {
  for (std::size_t i = 0; i < wide.size(); ++i) {
    if (fits(wide[i], narrow[i])) continue;
    if (result.count++ == 0) result.first = seen + static_cast<std::int64_t>(i);
  }
}

/// The same by bits, many elements at a time, as long as NaN and zeros of two signs need no closer look.
/// `round` works on bits and may return anything for NaN.
template <typename Round>
void count_misfits_by_bits(std::span<const float> wide, std::span<const float> narrow, std::int64_t seen,
                           Unrounded& result, const Round& round) {
  std::uint32_t unequal = 0;
  std::uint32_t negated = 0;
  std::uint32_t signs = 0;
  for (std::size_t i = 0; i < wide.size(); ++i) {
    const auto a = std::bit_cast<std::uint32_t>(wide[i]);
    const auto b = std::bit_cast<std::uint32_t>(narrow[i]);
    const std::uint32_t change = round(a) ^ b;
    unequal += static_cast<std::uint32_t>(change != 0);
    negated += static_cast<std::uint32_t>(change == kSignBit<float>);
    signs |= special_sign(wide[i]) | special_sign(narrow[i]);
  }
  if (unequal == 0 && (signs & kSignBit<float>) == 0) return;
  if ((signs & kSignBit<float>) == 0 && negated == 0 && result.first >= 0) {
    result.count += unequal;
    return;
  }
  count_misfits(wide, narrow, seen, result, [&](float value, float other) {
    if (std::isnan(value)) return std::isnan(other);
    return std::bit_cast<float>(round(std::bit_cast<std::uint32_t>(value))) == other;
  });
}

template <typename T>
void check_piece(std::span<const T> wide, std::span<const T> narrow, DType dtype, std::int64_t seen,
                 Unrounded& result) {
  if constexpr (std::is_same_v<T, float>) {
    // A pointer to the function would cost a call for each element.
    if (dtype == DType::bfloat16) {
      return count_misfits_by_bits(wide, narrow, seen, result,
                                   [](std::uint32_t bits) { return to_bfloat16(bits); });
    }
    if (dtype == DType::float16) {
      return count_misfits_by_bits(wide, narrow, seen, result,
                                   [](std::uint32_t bits) { return to_half(bits); });
    }
  } else if (dtype == DType::float32) {
    return count_misfits(wide, narrow, seen, result, [](double value, double other) {
      return same(static_cast<double>(static_cast<float>(value)), other);
    });
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
  // Rounding starts from the wider type; if neither type is wider, both ways are tried.
  first_to_second_.tried = possible && tensor::info(first).size >= tensor::info(second).size;
  second_to_first_.tried = possible && tensor::info(second).size >= tensor::info(first).size;
  both_.tried = first_to_second_.tried && second_to_first_.tried;
}

Unrounded RoundingCheck::result() const {
  if (both_.tried && both_.count < std::min(first_to_second_.count, second_to_first_.count)) return both_;
  const bool second =
      second_to_first_.tried && (!first_to_second_.tried || second_to_first_.count < first_to_second_.count);
  return second ? second_to_first_ : first_to_second_;
}

template <typename T>
void RoundingCheck::add(std::span<const T> x, std::span<const T> y) {
  if (first_to_second_.tried) check_piece(x, y, second_, seen_, first_to_second_);
  if (second_to_first_.tried) check_piece(y, x, first_, seen_, second_to_first_);
  if (both_.tried) {
    count_misfits(x, y, seen_, both_, [&](T a, T b) {
      return may_be_one(static_cast<double>(a), *form_of(first_), static_cast<double>(b), *form_of(second_));
    });
  }
  seen_ += static_cast<std::int64_t>(x.size());
}

CastCheck::CastCheck(DType first, DType second) : first_(first), second_(second) {
  if (tensor::info(first).kind != tensor::DTypeKind::floating ||
      tensor::info(second).kind != tensor::DTypeKind::floating)
    return;
  for (const bool to_second : {true, false}) {
    const DType to = to_second ? second : first;
    const DType from = to_second ? first : second;
    for (const DType between : {DType::bfloat16, DType::float16, DType::float8_e4m3fn, DType::float8_e5m2}) {
      if (between != to && between != from) casts_.push_back({to_second, between, false});
    }
    if (from == DType::float32 && (to == DType::float32 || to == DType::bfloat16))
      casts_.push_back({to_second, DType::bfloat16, true});
  }
}

template <typename T>
bool CastCheck::holds(Cast& cast, std::span<const T> from, std::span<const T> to) const {
  const DType stored = cast.to_second ? second_ : first_;
  for (std::size_t i = 0; i < from.size(); ++i) {
    auto value = static_cast<double>(from[i]);
    if (cast.cuts) {
      value = std::bit_cast<float>(std::bit_cast<std::uint32_t>(static_cast<float>(from[i])) & 0xffff0000U);
    } else {
      value = rounded_to(rounded_to(value, cast.between), stored);
    }
    const auto other = static_cast<double>(to[i]);
    if (value != other && !(std::isnan(value) && std::isnan(other))) return false;
    if (cast.values.size() < kFewestValues && std::ranges::find(cast.values, other) == cast.values.end())
      cast.values.push_back(other);
  }
  return true;
}

template <typename T>
void CastCheck::add(std::span<const T> x, std::span<const T> y) {
  std::erase_if(casts_, [&](Cast& cast) { return cast.to_second ? !holds(cast, x, y) : !holds(cast, y, x); });
}

std::string CastCheck::text() const {
  const auto found =
      std::ranges::find_if(casts_, [](const Cast& each) { return each.values.size() == kFewestValues; });
  if (found == casts_.end()) return {};
  const Cast& cast = *found;
  std::string text = cast.to_second ? "" : "the first is ";
  const auto name = [](DType dtype) { return tensor::info(dtype).name; };
  if (cast.cuts) return text + fmt::format("truncated to {}, not rounded", name(cast.between));
  text += fmt::format("rounded to {}", name(cast.between));
  if (first_ != second_) text += fmt::format(", then to {}", name(cast.to_second ? second_ : first_));
  return text;
}

template void RoundingCheck::add(std::span<const float>, std::span<const float>);
template void RoundingCheck::add(std::span<const double>, std::span<const double>);
template void CastCheck::add(std::span<const float>, std::span<const float>);
template void CastCheck::add(std::span<const double>, std::span<const double>);

}  // namespace msprobe::checkpoint
