// SPDX-License-Identifier: Apache-2.0
// The difference and relative error of two recorded statistics (docs/rules.md, "Differences of statistics").
#pragma once

#include <cstdint>

#include "dump/side.hpp"
#include "measuring/python_rules.hpp"
#include "report/table.hpp"

namespace msprobe::measuring {

/// The content of a difference cell: a number, or one of the texts.
enum class DifferenceKind : std::uint8_t { zero, number, nan, inf, neg_inf, differ, missing };

struct ValueDifference {
  DifferenceKind kind = DifferenceKind::zero;
  bool is_integer = false;
  std::int64_t integer = 0;        // target - golden, if both are integers
  double difference = 0;           // target - golden
  bool relative_infinite = false;  // golden is 0
  bool relative_missing = false;   // the same, with PythonRules::numbers_only
  double relative_percent = 0;     // |difference / golden * 100|
};

/// The kind of a recorded statistic; null and text that is not a number count as `none`.
enum class NumberKind : std::uint8_t { none, finite, not_finite };
NumberKind kind_of_number(const dump::RecordedValue& value, const TextPool& pool);

ValueDifference difference(const dump::RecordedValue& target, const TextPool& target_pool,
                           const dump::RecordedValue& golden, const TextPool& golden_pool,
                           const PythonRules& python);

report::Cell difference_cell(const ValueDifference& difference);
report::Cell relative_cell(const ValueDifference& difference);

/// The relative error as a fraction for the rules: 0.05 for `5.0%`. Infinite if golden is 0 or the difference
/// prints as `inf` or `-inf`; NaN if there is no number to judge.
double relative_fraction(const ValueDifference& difference);

}  // namespace msprobe::measuring
