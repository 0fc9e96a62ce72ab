// SPDX-License-Identifier: Apache-2.0
// A statistic or argument as the Python tool would hold it in a cell.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>

#include "support/text_pool.hpp"

namespace msprobe::dump {

using msprobe::TextPool;

enum class ValueKind : std::uint8_t {
  missing,  // prints N/A: no such row exists
  none,     // prints None: not recorded
  boolean,
  integer,
  real,
  text,
};

struct RecordedValue {
  ValueKind kind = ValueKind::none;
  bool boolean = false;
  std::uint32_t text = 0;  // in the pool of its side
  union {
    std::int64_t integer = 0;
    double real;
  };

  static RecordedValue missing() { return {.kind = ValueKind::missing, .integer = 0}; }
  static RecordedValue of(bool value) { return {.kind = ValueKind::boolean, .boolean = value, .integer = 0}; }
  static RecordedValue of(std::int64_t value) { return {.kind = ValueKind::integer, .integer = value}; }
  static RecordedValue of(double value) { return {.kind = ValueKind::real, .real = value}; }
  static RecordedValue of_text(std::uint32_t id) {
    return {.kind = ValueKind::text, .text = id, .integer = 0};
  }
};
static_assert(sizeof(RecordedValue) == 16);

inline bool is_recorded(const RecordedValue& value) {
  return value.kind > ValueKind::none;
}

/// Order of the statistics everywhere.
enum Statistic { kMax, kMin, kMean, kNorm, kStatistics };

/// Four values in 36 bytes: millions of them are kept.
class StatisticValues {
 public:
  StatisticValues() { fill({}); }
  RecordedValue operator[](std::size_t which) const {
    RecordedValue value;
    value.kind = kinds_[which];
    if (value.kind == ValueKind::text) {
      value.text = contents_[which][0];
    } else if (value.kind == ValueKind::boolean) {
      value.boolean = contents_[which][0] != 0;
    } else {
      value.integer = std::bit_cast<std::int64_t>(contents_[which]);
    }
    return value;
  }
  void set(std::size_t which, const RecordedValue& value);
  void fill(const RecordedValue& value) {
    for (std::size_t which = 0; which < kStatistics; ++which) set(which, value);
  }

 private:
  std::array<std::array<std::uint32_t, 2>, kStatistics> contents_;  // halves, which need no padding
  std::array<ValueKind, kStatistics> kinds_;
};
static_assert(sizeof(StatisticValues) == 36);

/// As the cell prints it; NaN in any spelling is `Nan`, infinities are `inf` and `-inf`.
std::string to_text(const RecordedValue& value, const TextPool& pool);

/// The class of a value in the table of docs/rules.md, "Differences of statistics".
enum class ValueClass { number, nan, inf, neg_inf, device, missing, other };

struct Classified {
  ValueClass type = ValueClass::other;
  double number = 0;        // for number
  bool is_integer = false;  // for number: `integer` is exact
  std::int64_t integer = 0;
};
Classified classify(const RecordedValue& value, const TextPool& pool);

}  // namespace msprobe::dump
