// SPDX-License-Identifier: Apache-2.0
#include "measuring/statistics_difference.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>

#include "dump/names.hpp"
#include "support/text.hpp"

namespace msprobe::measuring {
namespace {

using dump::classify;
using dump::RecordedValue;
using dump::ValueClass;
using dump::ValueKind;

using Kind = DifferenceKind;
using report::Spelled;

constexpr double kExactIntegers = 9007199254740992.0;  // 2^53

Kind from_classes(ValueClass target, ValueClass golden) {
  using enum ValueClass;
  if (target == missing || golden == missing) return Kind::missing;
  if (target == device && golden == device) return Kind::missing;
  if (target == other || golden == other || target == device || golden == device) return Kind::differ;
  if (target == nan || golden == nan) return Kind::nan;
  if (target == inf) return Kind::inf;
  if (target == neg_inf) return Kind::neg_inf;
  return golden == inf ? Kind::neg_inf : Kind::inf;
}

bool equal_as_text(const RecordedValue& target, const TextPool& target_pool, const RecordedValue& golden,
                   const TextPool& golden_pool) {
  if (target.kind == golden.kind && target.kind == ValueKind::real) {
    if (std::isnan(target.real) || std::isnan(golden.real))
      return std::isnan(target.real) && std::isnan(golden.real);
    return target.real == golden.real && std::signbit(target.real) == std::signbit(golden.real);
  }
  if (target.kind == golden.kind && target.kind != ValueKind::text)
    return target.boolean == golden.boolean && target.integer == golden.integer;
  return dump::to_text(target, target_pool) == dump::to_text(golden, golden_pool);
}

/// The text of a difference that is neither zero nor a number.
std::string_view word(Kind kind) {
  static constexpr std::array<std::string_view, 7> kWords = {"", "", "Nan", "inf", "-inf", "Diff", "N/A"};
  return kWords[static_cast<std::size_t>(kind)];
}

/// Only a value that was written as a number counts; an integer beyond 64 bits is kept as text and counts,
/// too.
std::optional<double> plain_number(const RecordedValue& value, const TextPool& pool) {
  if (value.kind == ValueKind::integer) return static_cast<double>(value.integer);
  if (value.kind == ValueKind::real) return value.real;
  if (value.kind != ValueKind::text) return std::nullopt;
  constexpr std::size_t kDigitsOfInteger = 18;
  std::string_view digits = pool.at(value.text);
  const std::string_view text = digits;
  if (digits.starts_with('-')) digits.remove_prefix(1);
  if (digits.size() <= kDigitsOfInteger || !dump::is_digits(digits)) return std::nullopt;
  return parse_number(text);
}

ValueDifference numbers_difference(const RecordedValue& target, const TextPool& target_pool,
                                   const RecordedValue& golden, const TextPool& golden_pool) {
  const auto t = plain_number(target, target_pool);
  const auto g = plain_number(golden, golden_pool);
  if (!t || !g) return {.kind = Kind::missing};
  ValueDifference result{.kind = Kind::number, .difference = *t - *g};
  if (std::isnan(result.difference)) return {.kind = Kind::nan};
  if (target.kind != ValueKind::real && golden.kind != ValueKind::real) {
    const bool small = target.kind == ValueKind::integer && golden.kind == ValueKind::integer;
    result.is_integer = small ? !__builtin_sub_overflow(target.integer, golden.integer, &result.integer)
                              : result.difference == 0;
    if (result.is_integer) result.difference = static_cast<double>(result.integer);
  }
  result.relative_missing = *g == 0;
  if (!result.relative_missing) result.relative_percent = std::fabs(result.difference / *g * 100);
  return result;
}

}  // namespace

NumberKind kind_of_number(const RecordedValue& value, const TextPool& pool) {
  switch (value.kind) {
    case ValueKind::boolean:
    case ValueKind::integer:
      return NumberKind::finite;
    case ValueKind::real:
      return std::isfinite(value.real) ? NumberKind::finite : NumberKind::not_finite;
    case ValueKind::text:
      break;
    default:
      return NumberKind::none;
  }
  switch (classify(value, pool).type) {
    case ValueClass::number:
      return NumberKind::finite;
    case ValueClass::nan:
    case ValueClass::inf:
    case ValueClass::neg_inf:
      return NumberKind::not_finite;
    default:
      return NumberKind::none;
  }
}

ValueDifference difference(const RecordedValue& target, const TextPool& target_pool,
                           const RecordedValue& golden, const TextPool& golden_pool,
                           const PythonRules& python) {
  if (python.numbers_only) return numbers_difference(target, target_pool, golden, golden_pool);
  ValueDifference result;
  if (equal_as_text(target, target_pool, golden, golden_pool)) return result;
  const dump::Classified t = classify(target, target_pool);
  const dump::Classified g = classify(golden, golden_pool);
  if (t.type != ValueClass::number || g.type != ValueClass::number) {
    result.kind = from_classes(t.type, g.type);
    return result;
  }
  const bool integers = t.is_integer && g.is_integer;
  if (!python.compares_spelling && !integers && t.number == g.number) return result;
  result.kind = Kind::number;
  // As doubles, large integers lose their last digits.
  const bool exact = !python.integers_as_double ||
                     (std::fabs(t.number) < kExactIntegers && std::fabs(g.number) < kExactIntegers);
  if (integers && exact && !__builtin_sub_overflow(t.integer, g.integer, &result.integer)) {
    result.is_integer = true;
    result.difference = static_cast<double>(result.integer);
  } else {
    result.difference = t.number - g.number;
  }
  if (g.number == 0) {
    result.relative_infinite = true;
  } else {
    result.relative_percent = std::fabs(result.difference / g.number * 100);
  }
  return result;
}

report::Cell difference_cell(const ValueDifference& difference) {
  if (difference.kind == Kind::zero) return Spelled{};
  if (difference.kind != Kind::number) return report::Text{word(difference.kind)};
  if (difference.is_integer)
    return Spelled{Spelled::NumberForm::integer, difference.difference, difference.integer};
  return Spelled{Spelled::NumberForm::real, difference.difference};
}

report::Cell relative_cell(const ValueDifference& difference) {
  if (difference.kind == Kind::zero) return Spelled{};
  if (difference.kind != Kind::number) return report::Text{word(difference.kind)};
  if (difference.relative_infinite) return report::Text{"inf"};
  if (difference.relative_missing) return report::Text{word(Kind::missing)};
  return Spelled{Spelled::NumberForm::percent, difference.relative_percent};
}

double relative_fraction(const ValueDifference& difference) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  if (difference.kind == Kind::zero) return 0;
  if (difference.kind == Kind::inf || difference.kind == Kind::neg_inf) return kInfinity;
  if (difference.kind != Kind::number || difference.relative_missing)
    return std::numeric_limits<double>::quiet_NaN();
  return difference.relative_infinite ? kInfinity : difference.relative_percent / 100;
}

}  // namespace msprobe::measuring
