// SPDX-License-Identifier: Apache-2.0
#include "compare/metrics/statistics_difference.hpp"

#include <cmath>
#include <limits>

#include "support/text.hpp"

namespace msprobe::compare {
namespace {

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

bool equal_as_text(const Value& target, const TextPool& target_pool, const Value& golden,
                   const TextPool& golden_pool) {
  if (target.kind == golden.kind) {
    switch (target.kind) {
      case ValueKind::missing:
      case ValueKind::none:
        return true;
      case ValueKind::boolean:
        return target.boolean == golden.boolean;
      case ValueKind::integer:
        return target.integer == golden.integer;
      case ValueKind::real:
        if (std::isnan(target.real) || std::isnan(golden.real)) {
          return std::isnan(target.real) && std::isnan(golden.real);
        }
        return target.real == golden.real && std::signbit(target.real) == std::signbit(golden.real);
      case ValueKind::text:
        break;
    }
  }
  return to_text(target, target_pool) == to_text(golden, golden_pool);
}

std::string_view word(Kind kind) {
  switch (kind) {
    case Kind::nan:
      return "Nan";
    case Kind::inf:
      return "inf";
    case Kind::neg_inf:
      return "-inf";
    case Kind::missing:
      return "N/A";
    default:
      return "Diff";
  }
}

}  // namespace

ValueDifference difference(const Value& target, const TextPool& target_pool, const Value& golden,
                           const TextPool& golden_pool, const MeasureTraits& traits) {
  ValueDifference result;
  if (equal_as_text(target, target_pool, golden, golden_pool)) return result;
  const Classified t = classify(target, target_pool);
  const Classified g = classify(golden, golden_pool);
  if (t.type != ValueClass::number || g.type != ValueClass::number) {
    result.kind = from_classes(t.type, g.type);
    return result;
  }
  const bool integers = t.is_integer && g.is_integer;
  if (!traits.compares_spelling && !integers && t.number == g.number) return result;
  result.kind = Kind::number;
  // In double large integers lose their last digits.
  const bool exact = !traits.integers_as_double ||
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
    return Spelled{Spelled::Kind::integer, difference.difference, difference.integer};
  return Spelled{Spelled::Kind::real, difference.difference};
}

report::Cell relative_cell(const ValueDifference& difference) {
  if (difference.kind == Kind::zero) return Spelled{};
  if (difference.kind != Kind::number) return report::Text{word(difference.kind)};
  if (difference.relative_infinite) return report::Text{"inf"};
  return Spelled{Spelled::Kind::percent, difference.relative_percent};
}

double relative_fraction(const ValueDifference& difference) {
  switch (difference.kind) {
    case Kind::zero:
      return 0;
    case Kind::inf:
    case Kind::neg_inf:
      return std::numeric_limits<double>::infinity();
    case Kind::number:
      return difference.relative_infinite ? std::numeric_limits<double>::infinity()
                                          : difference.relative_percent / 100;
    default:
      return std::numeric_limits<double>::quiet_NaN();
  }
}

}  // namespace msprobe::compare
